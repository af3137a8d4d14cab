"""What a stage of each kind of source plans and makes, as digests: bytes change only where a version is raised.

The sources of these stages keep their contract, which is `twinset.check_source`.

After a version was raised, write them anew, and read what changed with git diff:

    GOLDEN=write .venv/bin/python -m pytest -m "slow or not slow" tests/guard/test_golden.py
"""

import json
import os
import re
import sys
import tarfile
import tomllib
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq
import pytest
import yaml

from tests.extras import parts
from tests.guard.golden_inputs import write
from tests.made_recipe import run, write_package
from twinset.contracts.source import SOURCES

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
DIGESTS = HERE / "golden.json"
RECIPE = HERE / "golden.yaml"
OF_EXTRAS = ROOT / "tests/extras/golden.yaml"  # its kinds, and those of twinset that read its questions
_RECIPE = yaml.safe_load(RECIPE.read_text("utf-8"))
_RECIPE["stages"] |= yaml.safe_load(OF_EXTRAS.read_text("utf-8"))["stages"]
#: The first stage of each kind.
STAGES = {stage["source"]["kind"]: name for name, stage in reversed(_RECIPE["stages"].items())}

#: Kinds of which the plan alone has a digest.
PLANNED_ONLY = {
    "drawn-negatives": "a network draws it",
    "kubric": "Blender renders it",
    "stable-diffusion": "a network draws it",
}
#: Kinds that load a parser or torch, in a process for each stage, or that look for faces: together they take minutes.
SLOW = {
    *("caption-scores", "caption-twins", "confused-pairs", "difference-boxes"),
    *("genecis-triplets", "image-ambiguity", "image-choice", "image-features", "image-neighbours"),
    *("image-verification", "negative-captions", "pair-verification", "scene-graphs", "selected-negatives"),
    "youcook2",
}
#: Kinds with numbers that processors round differently: two decimals of these count.
ROUNDED = {"confused-pairs", "edited-photos", "image-features", "image-neighbours"}
#: The libraries whose versions decide these bytes.
LIBRARIES = {
    **{"numpy": "2.4.6", "pillow": "13.0.0", "pyarrow": "26.0.1", "av": "18.1.0", "dlib-bin": "20.0.1"},
    **{"opencv-python": "5.0.0.93", "spacy": "3.8.18", "scikit-learn": "1.9.1"},
}
#: What one person answers to the tasks of a stage, in the order of its plan.
ANSWERS = {
    "baseline": ["0", "1", "0", "0", "0", "1", "0", "0", "0", "0", "0", "0", "0", "1", "0", "1"],
    "chosen": ["none", "0", "1", "none", "none", "none"],
    "rankings": ["0 1 2 3", "1 0", "3 2 1 0", "2"],
    "screening": ["keep", "drop", "drop", "keep"],
    "unambiguous": ["generated", "photo"],
}
#: Kinds of twinset-extras are checked in tests/extras, as caption-twins: a word less in the small table of golden.yaml
#: makes other twins.
CHECKED = {
    kind: name
    for kind, name in STAGES.items()
    if kind != "caption-twins" and not SOURCES.distribution(kind).startswith("twinset-extras")
}
#: Builds stages and plans others; prints what is wrong with the sources that it checks, by kind.
BUILD = """
import json, sys, twinset
from pathlib import Path
from twinset.generators.decisions.answers import FILE, Answer
from twinset.generators.decisions.question import planned_tasks
from twinset.review.store import AnswerStore
from twinset.shards.storage.store import Store
from twinset.stages.job import Job

def answer(stage, values):
    answers = AnswerStore(Path("out", FILE))
    for task, value in zip(planned_tasks(Store("out"), "_stages/" + stage), values, strict=True):
        about = {"stage": stage, "task": task.key, "binding": task.binding}
        answers.save(Answer(**about, annotator="ann", answer=value))
    answers.close()

def check(name, most):
    stage = recipe[name]
    copied = stage.source.copies and getattr(stage.source, stage.source.copies)  # what is copied keeps its keys
    context = twinset.Context(copied or stage.known_as or name, stage.split, recipe.seed, job.earlier, job.store)
    try:
        twinset.check_source(stage.source, context, most=100, make=most)
    except Exception as error:
        return repr(error)

if __name__ == "__main__":
    made, planned, checked, values = map(json.loads, sys.argv[1:])
    for stage in [name for name in values if name in made]:
        try:
            twinset.build("golden.yaml", "out", only=[stage])
        except twinset.DecisionsMissing:
            answer(stage, values[stage])
    twinset.build("golden.yaml", "out", only=made)
    for name in planned:
        twinset.build("golden.yaml", "out", only=[name], stage=name, plan_only=True)
    recipe = twinset.load_recipe("golden.yaml")
    job = Job(recipe, Store("out"))
    print(json.dumps({kind: check(name, 0 if name in planned else 8) for kind, name in checked.items()}))
"""

same_libraries = pytest.mark.skipif(
    any(version(name) != expected for name, expected in LIBRARIES.items()),
    reason=f"other libraries than those that the digests are of ({LIBRARIES}): install requirements.lock",
)


class Built(NamedTuple):
    """A folder with the stages of some kinds, and what is wrong with the sources of these."""

    stages: Path
    wrong: dict[str, str | None]


def build(folder: Path, kinds: Sequence[str]) -> Built:
    """In a process of its own, since two threads in dlib corrupt the heap."""
    write(folder)
    (folder / "golden.yaml").write_text(yaml.safe_dump(_RECIPE, sort_keys=False))
    (folder / "build.py").write_text(BUILD)
    # The engines and the scorer of tests/foreign, as if their package were installed.
    project = tomllib.loads((ROOT / "tests/foreign/pyproject.toml").read_text("utf-8"))["project"]
    write_package(folder, "mylab", project["entry-points"], project["version"])
    parts.install(folder)
    made = [STAGES[kind] for kind in kinds if kind not in PLANNED_ONLY]
    planned = [STAGES[kind] for kind in kinds if kind in PLANNED_ONLY]
    checked = {kind: CHECKED[kind] for kind in kinds if kind in CHECKED}
    roots = (ROOT / part for part in ("tests/foreign", "src", "demo", "extras", ""))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (folder, *roots)))}
    command = [sys.executable, "build.py", *map(json.dumps, (made, planned, checked, ANSWERS))]
    return Built(folder / "out/_stages", json.loads(run(command, folder, environment).splitlines()[-1]))


@pytest.fixture(scope="module")
def built_with(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Built]:
    """What is built together with a kind: the quick ones, or the slow ones."""

    @cache
    def of(slow: bool) -> Built:
        return build(tmp_path_factory.mktemp("golden"), [kind for kind in STAGES if (kind in SLOW) == slow])

    return lambda kind: of(kind in SLOW)


def by_kind(kinds: Iterable[str]) -> list[Any]:
    """Parameters of a test, with the slow kinds marked."""
    return [pytest.param(kind, marks=[pytest.mark.slow] if kind in SLOW else []) for kind in sorted(kinds)]


def digest(parts: Iterable[bytes]) -> str:
    """Of bytes, and of how they are divided."""
    whole = sha256()
    for part in parts:
        whole.update(b"%d\n%s" % (len(part), part))
    return whole.hexdigest()


def steady(text: bytes, kind: str) -> bytes:
    """JSON as it is the same on every machine."""
    if kind not in ROUNDED:
        return text
    return re.sub(rb"(?<!\w)-?\d+\.\d+(e-?\d+)?", lambda number: b"%.2f" % (round(float(number[0]), 2) + 0.0), text)


def rows(kind: str, files: Iterable[Path]) -> list[bytes]:
    """The rows of Parquet files, as JSON."""
    listed = [row for file in files for row in pq.read_table(file).to_pylist()]
    return [steady(json.dumps(row, default=repr).encode(), kind) for row in listed]


def members(kind: str, stage: Path) -> list[bytes]:
    """The names of all tars and of their members, and what these hold."""
    parts: list[bytes] = []
    for path in sorted(stage.glob("*/*.tar")):
        parts.append(path.relative_to(stage).as_posix().encode())
        with tarfile.open(path) as tar:
            for member in tar:
                file = tar.extractfile(member)
                assert file is not None
                content = file.read()
                parts += [member.name.encode(), steady(content, kind) if member.name.endswith(".json") else content]
    return parts


def digests(kind: str, stage: Path) -> dict[str, Any]:
    """Versions of a stage, and digests of its plan and, unless it is only planned, of its tars and its index."""
    record = json.loads((stage / "_meta/stage.json").read_bytes())
    facts = record["facts"]
    versions = {part["kind"]: part["version"] for part in (facts["generator"], *facts["filters"])}
    made = {"plan": rows(kind, sorted((stage / "_meta/plan").glob("[0-9]*.parquet")))}
    if kind not in PLANNED_ONLY:
        made["index"] = rows(kind, [stage / "_meta/index.parquet"])
        assert made["index"], f"nothing of {kind} is kept"
        made["tars"] = members(kind, stage)
    assert made["plan"] or not record["shards"], f"nothing of {kind} is planned"
    return {
        "versions": {**versions, "schema": facts["schema_version"]},
        **{name: digest(parts) for name, parts in made.items() if parts},
    }


@same_libraries
@pytest.mark.parametrize("kind", by_kind(STAGES))
def test_a_stage_of_a_kind_has_the_same_bytes_as_ever(kind: str, built_with: Callable[[str], Built]) -> None:
    made = digests(kind, built_with(kind).stages / STAGES[kind])
    golden = json.loads(DIGESTS.read_bytes()) if DIGESTS.exists() else {}
    if os.environ.get("GOLDEN") == "write":
        DIGESTS.write_text(json.dumps({**golden, kind: made}, indent=2, sort_keys=True) + "\n")
        pytest.skip(f"the digests of {kind} are written")
    if made["versions"] == golden[kind]["versions"]:
        assert made == golden[kind], f"{kind}: bytes changed; raise its version, then write the digests anew"
    assert made == golden[kind], f"{kind}: a version was raised; write the digests anew"


def test_every_kind_of_source_has_digests() -> None:
    golden = json.loads(DIGESTS.read_bytes())
    kinds = {kind for kind in SOURCES.kinds() if not kind.startswith("test-")}  # those are of tests/made_sources.py
    assert kinds == golden.keys() == STAGES.keys(), "write a stage of the kind in tests/guard/golden.yaml"
    assert {kind for kind, digests in golden.items() if "index" not in digests} == PLANNED_ONLY.keys()


@pytest.mark.parametrize("kind", by_kind(CHECKED))
def test_a_source_keeps_the_contract(kind: str, built_with: Callable[[str], Built]) -> None:
    assert built_with(kind).wrong[kind] is None
