"""The design of a grid, a YAML file: arms, data, seeds, tests, and what the paper reports."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, NonNegativeInt, model_validator

from twinset.contracts.errors import WrongUse, naming, suggested
from twinset.contracts.recipe.loading import override
from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.evaluation.benchmarks import BENCHMARKS
from twinset.training.runs.settings import checked
from twinset.training.tasks import TaskName

#: The designs of the papers' tables, by name.
PAPERS = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.yaml"))}
MEAN = "mean"  # column of a mean
_ARM = re.compile(r"\{([^{}]*)\}")
_Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9+-]*$")]  # arms and tests are folders
_Places = Annotated[tuple[str, ...], BeforeValidator(lambda given: (given,) if isinstance(given, str) else given or ())]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Test(_Strict):
    """What arms are tested on, a table of its own; or the mean of figures of tests, each of which counts the same.

    benchmark: its kind, as ``--benchmark`` of ``twinset eval run`` takes it. folder: where it lies, other than all of
    this kind. subsets, categories: that are read; all when empty. figures: columns of the table. mean_of: tests; the
    table has one column, the mean of these figures.
    """

    __test__ = False  # not a test of pytest's

    title: str
    benchmark: str = ""
    folder: str | None = None
    subsets: tuple[str, ...] = ()
    categories: frozenset[str] = frozenset()
    figures: tuple[str, ...] = Field(min_length=1)
    mean_of: tuple[str, ...] = ()

    @property
    def heads(self) -> Sequence[str]:
        """Columns of the table."""
        return (MEAN,) if self.mean_of else self.figures


class Arm(_Strict):
    """A row of the table.

    task: as ``twinset train`` names it. data, validation: names of the design's data. settings: what differs from the
    design's `common` of the task; ``{ARM}`` in one, or in `model`, is the folder of an arm above, of the same seed.
    model: what is scored instead of what is trained. An arm without data is not trained, and without a model either it
    is only what the paper reports. paper: in percent, by test and figure.
    """

    title: str
    task: TaskName = "clip"
    data: tuple[str, ...] = ()
    validation: tuple[str, ...] = ()
    settings: Mapping[str, Any] = {}
    model: str | None = None
    paper: Mapping[str, Mapping[str, float]] = {}

    @model_validator(mode="after")
    def _is_trained_or_scored(self) -> Arm:
        if not self.data and (self.settings or self.validation or not (self.model or self.paper)):
            raise ValueError("data: name some, or a model alone, which is scored as it is")
        return self

    @property
    def after(self) -> list[str]:
        """Arms whose folders its settings name."""
        texts = [value for value in (*self.settings.values(), self.model) if isinstance(value, str)]
        return [name for text in texts for name in _ARM.findall(text)]


class Design(_Strict):
    """A paper's table.

    paper: what is repeated, and which table of it. data: places of each, as ``twinset train --data`` takes them.
    folders: of benchmarks, by kind; tests without are left out. common: settings of all arms, by task. seeds: each is a
    run of every arm.
    """

    paper: str
    data: Mapping[_Name, _Places]
    folders: Mapping[str, str | None] = {}
    seeds: frozenset[NonNegativeInt] = Field(min_length=1)
    common: Mapping[TaskName, Mapping[str, Any]] = {}
    tests: Mapping[_Name, Test] = Field(min_length=1)
    arms: Mapping[_Name, Arm] = Field(min_length=1)

    @model_validator(mode="after")
    def _names_are_known(self) -> Design:
        _check_known("folders", self.folders, {test.benchmark for test in self.tests.values()})
        for name, test in self.tests.items():
            if not test.mean_of:
                _check_known(f"tests.{name}.benchmark", [test.benchmark], BENCHMARKS.kinds())
            _check_known(f"tests.{name}.mean_of", test.mean_of, self.tests)
            for part in test.mean_of:
                _check_known(f"tests.{name}.figures", test.figures, self.tests[part].figures)
        trained = list[str]()
        for name, arm in self.arms.items():
            _check_known(f"arms.{name}.data", (*arm.data, *arm.validation), self.data)
            _check_known(f"arms.{name}.settings", arm.after, trained)
            _check_known(f"arms.{name}.paper", arm.paper, self.tests)
            for reported, figures in arm.paper.items():
                _check_known(f"arms.{name}.paper.{reported}", figures, self.tests[reported].heads)
            trained += [name] if arm.data else []
        return self

    def only(self, arms: Sequence[str]) -> Design:
        """The same with these arms; all when empty. Raises `WrongUse`."""
        if unknown := [name for name in arms if name not in self.arms]:
            raise WrongUse(f"arm {unknown[0]!r}: {suggested(unknown[0], self.arms)}")
        return self.model_copy(update={"arms": {name: self.arms[name] for name in arms or self.arms}})


def _check_known(place: str, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{place}: {name!r} is not defined; {suggested(name, known)}")


def with_folders(value: Any, out: Path, seed: int) -> Any:
    """A setting with the folders of a grid's runs for ``{ARM}``."""
    return _ARM.sub(lambda arm: str(folder(out, arm[1], seed)), value) if isinstance(value, str) else value


def folder(out: Path, arm: str, seed: int) -> Path:
    """Where the run of an arm lies."""
    return out / "arms" / arm / f"seed-{seed}"


def load_design(path: Path, settings: Sequence[str] = ()) -> Design:
    """The design in a file, or a paper's by its name, with overrides ``KEY.PATH=VALUE``; raises `WrongUse`."""
    try:
        raw = load_yaml(PAPERS.get(str(path), path).read_bytes().decode("utf-8"))
    except (OSError, UnicodeDecodeError, RecursionError, yaml.YAMLError) as error:
        raise WrongUse(f"{path}: cannot be read as YAML ({error}); name a design, or its file") from error
    for setting in settings:
        override(raw, setting)
    with naming(str(path)):
        return checked(Design, raw)
