"""The contract of sources, on the stages of golden.yaml: `twinset.check_source` of each kind."""

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.guard.test_golden import PLANNED_ONLY, ROOT, SLOW, STAGES, built
from twinset.contracts.source import SOURCES

#: Checked in tests of its own: a word less in the small table of golden.yaml makes other twins.
ELSEWHERE = {"caption-twins"}
#: Kinds of twinset-extras are checked in extras/tests.
KINDS = {kind for kind in STAGES.keys() - ELSEWHERE if not SOURCES.distribution(kind).startswith("twinset-extras")}

CHECK = """
import json, sys, twinset
from twinset.shards.storage.store import Store
from twinset.stages.job import Job

if __name__ == "__main__":
    recipe = twinset.load_recipe("golden.yaml")
    job, found = Job(recipe, Store("out")), {}
    for kind, (name, make) in json.loads(sys.argv[1]).items():
        stage = recipe[name]
        copied = stage.source.copies and getattr(stage.source, stage.source.copies)  # what is copied keeps its keys
        known_as = copied or stage.known_as or name
        context = twinset.Context(known_as, stage.split, recipe.seed, job.earlier, job.store)
        try:
            twinset.check_source(stage.source, context, most=100, make=make)
            found[kind] = ""
        except Exception as error:
            found[kind] = repr(error)
    print(json.dumps(found))
"""


def checked(folder: Path, kinds: Iterable[str]) -> dict[str, str]:
    """What is wrong with each kind; in a process of its own, since two threads in dlib corrupt the heap."""
    built(folder, kinds := [*kinds])
    (folder / "check.py").write_text(CHECK)
    places = os.pathsep.join(
        map(str, (folder, *(ROOT / part for part in ("tests/foreign", "src", "demo", "extras", ""))))
    )
    stages = {kind: (STAGES[kind], 0 if kind in PLANNED_ONLY else 8) for kind in kinds}
    done = subprocess.run(
        [sys.executable, "check.py", json.dumps(stages)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return checked(tmp_path_factory.mktemp("quick"), KINDS - SLOW)


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return checked(tmp_path_factory.mktemp("slow"), KINDS & SLOW)


def test_every_kind_has_a_stage() -> None:
    kinds = {kind for kind in SOURCES.kinds() if not kind.startswith("test-")}  # those are of tests/made_sources.py
    assert kinds <= STAGES.keys(), "write a stage of the kind in tests/guard/golden.yaml"


@pytest.mark.parametrize("kind", sorted(KINDS - SLOW))
def test_a_source_keeps_the_contract(kind: str, quick: dict[str, str]) -> None:
    assert not quick[kind]


@pytest.mark.slow
@pytest.mark.parametrize("kind", sorted(KINDS & SLOW))
def test_a_slow_source_keeps_the_contract(kind: str, slow: dict[str, str]) -> None:
    assert not slow[kind]
