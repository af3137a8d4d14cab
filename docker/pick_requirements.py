"""Prints the part of requirements.lock that the project needs with some of its extras, versions and hashes unchanged.

    python docker/pick_requirements.py [EXTRA ...]

Run in the folder of pyproject.toml and requirements.lock, with Python alone. Workers with different extras must have
the same versions of what they share, so nothing is resolved here: the lock names after each package who asks for it
(``# via``), and whatever nobody asked for, counting from pyproject.toml, is left out.
"""

import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path


def normalised(requirement: str) -> str:
    """A requirement's name as locks spell it (PEP 503): ``Scene_Graph[x]>=1`` is ``scene-graph``."""
    name = re.match(r"[A-Za-z0-9._-]+", requirement)
    if name is None:
        raise SystemExit(f"{requirement!r} names no package; correct it in pyproject.toml")
    return re.sub(r"[-_.]+", "-", name[0]).lower()


def asked_for(project: Path, extras: Iterable[str]) -> set[str]:
    """Names that pyproject.toml asks for: to build the project, to run it, and for the extras."""
    settings = tomllib.loads(project.read_text())
    optional = settings["project"]["optional-dependencies"]
    unknown = sorted(set(extras) - optional.keys())
    if unknown:
        raise SystemExit(f"{project} has no extra {', '.join(unknown)}; it has {', '.join(optional)}")
    asked = [*settings["build-system"]["requires"], *settings["project"]["dependencies"]]
    for extra in extras:
        asked += optional[extra]
    return {normalised(requirement) for requirement in asked}


def entries_of(lock: Path) -> dict[str, str]:
    """The lock's entries, hashes and all, by name."""
    entries = re.split(r"^(?=[A-Za-z0-9])", lock.read_text(), flags=re.MULTILINE)
    return {normalised(entry): entry for entry in entries if entry.strip()}


def pick(entries: dict[str, str], asked: set[str]) -> list[str]:
    """The entries that are asked for, and those that they ask for in turn, in the lock's order."""
    if absent := sorted(asked - entries.keys()):
        raise SystemExit(f"requirements.lock lacks {', '.join(absent)}; run `make lock`")
    needs = defaultdict(set)
    for name, entry in entries.items():
        _, _, reasons = entry.partition("# via")
        for reason in reasons.replace("#", " ").split("\n"):
            if reason.strip():
                needs[normalised(reason.strip())].add(name)
    needed: set[str] = set()
    waiting = set(asked)
    while waiting:
        name = waiting.pop()
        needed.add(name)
        # The project itself is behind every extra; what it asks for was given.
        waiting |= needs[name] - needed
    return [entry for name, entry in entries.items() if name in needed]


if __name__ == "__main__":
    sys.stdout.writelines(pick(entries_of(Path("requirements.lock")), asked_for(Path("pyproject.toml"), sys.argv[1:])))
