"""The design of a grid, a YAML file: arms, data, seeds, tests, and what the paper reports."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError, model_validator

from twinset.contracts.errors import WrongUse, suggested
from twinset.contracts.recipe.loading import override
from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.evaluation.benchmarks import BENCHMARKS
from twinset.training.tasks import TASKS

#: The designs of the papers' tables, by name.
PAPERS = {path.stem: path for path in sorted(Path(__file__).parent.glob("*.yaml"))}
NAME = r"^[a-z0-9][a-z0-9+-]*$"  # of arms and tests, which are folders
_OF_ARM = re.compile(r"\{([^{}]*)\}")
_Name = Annotated[str, Field(pattern=NAME)]
_Task = Annotated[str, AfterValidator(lambda task: task if task in TASKS else _unknown(task))]


def _unknown(task: str) -> str:
    raise ValueError(suggested(task, TASKS))


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Test(_Strict):
    """What arms are tested on.

    benchmark: its kind, as ``--benchmark`` of ``twinset eval run`` takes it. subsets, categories: that are read; all
    when empty. figures: columns of the table. heads: what the paper calls them, where it is something else.
    """

    __test__ = False  # not a test of pytest's

    title: str
    benchmark: str
    subsets: tuple[str, ...] = ()
    categories: frozenset[str] = frozenset()
    figures: tuple[str, ...] = Field(min_length=1)
    heads: Mapping[str, str] = {}

    @model_validator(mode="after")
    def _known(self) -> Test:
        BENCHMARKS.find(self.benchmark)
        if unknown := [name for name in self.heads if name not in self.figures]:
            raise ValueError(f"heads: {unknown[0]!r} is not a figure; {suggested(unknown[0], self.figures)}")
        return self


MEAN = "mean"  # column of a mean


class Mean(_Strict):
    """A table of its own: the mean of figures of tests, each of which counts the same, as in GeneCIS's average."""

    title: str
    tests: tuple[str, ...] = Field(min_length=2)
    figures: tuple[str, ...] = Field(min_length=1)


Reported = Mapping[str, Mapping[str, float]]


class Arm(_Strict):
    """A row of the table.

    task: as ``twinset train`` names it; data, validation: names that ``--data`` gives places to. settings: what differs
    from the design's `common` of the task. ``{ARM}`` in a setting is the folder of another arm of the same seed, which
    is trained before. model: what is scored instead of what is trained; an arm without data is not trained.
    paper: what the paper reports, in percent, by test or mean, and figure; others: of its other models, by their names.
    """

    title: str
    task: _Task = "clip"
    data: tuple[str, ...] = ()
    validation: tuple[str, ...] = ()
    settings: Mapping[str, Any] = {}
    model: str | None = None
    paper: Reported = {}
    others: Mapping[str, Reported] = {}

    @model_validator(mode="after")
    def _can_be_scored(self) -> Arm:
        if not self.data and (self.model is None or self.settings or self.validation):
            raise ValueError("data: name some, or a model alone, which is scored as it is")
        return self

    @property
    def after(self) -> set[str]:
        """Arms whose folders its settings name."""
        said = (*self.settings.values(), self.model)
        return {name for one in said if isinstance(one, str) for name in _OF_ARM.findall(one)}


class Design(_Strict):
    """A paper's table.

    paper: what is repeated, and which table of it. data: what each name stands for, in words. common: settings of all
    arms, by task. seeds: each is a run of every arm. means: over tests, beside these.
    """

    name: _Name
    paper: str
    data: Mapping[_Name, str]
    seeds: tuple[NonNegativeInt, ...] = Field(min_length=1)
    common: Mapping[_Task, Mapping[str, Any]] = {}
    tests: Mapping[_Name, Test] = Field(min_length=1)
    means: Mapping[_Name, Mean] = {}
    arms: Mapping[_Name, Arm] = Field(min_length=1)

    @model_validator(mode="after")
    def _names_are_known(self) -> Design:
        columns = {name: test.figures for name, test in self.tests.items()}
        for name, mean in self.means.items():
            for figure in mean.figures:
                if unknown := [one for one in mean.tests if figure not in columns.get(one, ())]:
                    raise ValueError(f"means.{name}: {unknown[0]!r} is not a test with the figure {figure!r}")
        if twice := self.means.keys() & self.tests.keys():
            raise ValueError(f"means.{min(twice)}: a test has this name; choose another")
        columns |= {name: (MEAN,) for name in self.means}
        for name, arm in self.arms.items():
            reported = [("paper", arm.paper), *((f"others.{model}", one) for model, one in arm.others.items())]
            for known, asked in (
                (self.data, (*arm.data, *arm.validation)),
                (self.arms, arm.after),
                *((columns, one) for _, one in reported),
            ):
                if unknown := [one for one in asked if one not in known]:
                    raise ValueError(f"arms.{name}: {unknown[0]!r} is not defined; {suggested(unknown[0], known)}")
            for of, test, cells in ((of, *cell) for of, one in reported for cell in one.items()):
                figures = columns[test]
                if lacking := [figure for figure in cells if figure not in figures]:
                    problem = f"{lacking[0]!r} is not a figure of this test; {suggested(lacking[0], figures)}"
                    raise ValueError(f"arms.{name}.{of}.{test}: {problem}")
        if repeated := [one for one in self.seeds if self.seeds.count(one) > 1]:
            raise ValueError(f"seeds: {repeated[0]} is duplicated; remove one")
        for task, settings in self.common.items():
            if named := [name for name, value in settings.items() if isinstance(value, str) and _OF_ARM.search(value)]:
                raise ValueError(f"common.{task}.{named[0]}: only an arm's own settings name arms; move it there")
        _ = self.order  # a circle
        return self

    @property
    def order(self) -> list[str]:
        """Arms, each behind those that it begins from."""
        try:
            sorter = TopologicalSorter({name: arm.after for name, arm in self.arms.items()})
            return list(sorter.static_order())
        except CycleError as error:
            raise ValueError(f"arms: {' → '.join(error.args[1])} begin from each other") from error

    def only(self, arms: Sequence[str]) -> Design:
        """The same with some arms, and those that they begin from. Raises `WrongUse` for an arm that there is not."""
        wanted, left = set[str](), list(arms)
        while left:
            if (name := left.pop()) not in self.arms:
                raise WrongUse(f"arm {name!r}: {suggested(name, self.arms)}")
            if name not in wanted:
                wanted.add(name)
                left += self.arms[name].after
        return self.model_copy(update={"arms": {name: arm for name, arm in self.arms.items() if name in wanted}})

    def settings(self, arm: str, seed: int, folders: Mapping[str, Path], places: Mapping[str, Sequence[str]]) -> Any:
        """The settings of a run as plain values.

        Args:
            folders: of the arms of this seed.
            places: of data, by name.
        """
        one = self.arms[arm]
        given = {**self.common.get(one.task, {}), **one.settings}
        given |= {"data": [place for name in one.data for place in places[name]]}
        if one.validation:
            given["validation"] = [place for name in one.validation for place in places[name]]
        if "seed" in settings_class(one.task).model_fields:
            given["seed"] = seed
        return {name: filled(value, folders) for name, value in given.items()}


def filled(value: Any, folders: Mapping[str, Path]) -> Any:
    """A setting with folders for ``{ARM}``."""
    return _OF_ARM.sub(lambda found: str(folders[found[1]]), value) if isinstance(value, str) else value


def settings_class(task: str) -> type[BaseModel]:
    """The settings of a task of training."""
    kind: type[BaseModel] = getattr(import_module(f"twinset.training.{task}.settings"), TASKS[task][0])
    return kind


def load_design(path: Path, settings: Sequence[str] = ()) -> Design:
    """The design in a file, or a paper's by its name, with overrides ``KEY.PATH=VALUE``; raises `WrongUse`."""
    try:
        raw = load_yaml(PAPERS.get(str(path), path).read_bytes().decode("utf-8"))
        if not isinstance(raw, dict):
            raise WrongUse(f"{path}: not a design; it has the keys {', '.join(Design.model_fields)}")
        for setting in settings:
            override(raw, setting)
        return Design.model_validate(raw)
    except OSError as error:
        raise WrongUse(f"{path}: cannot be read ({error.strerror}); name a design, or its file") from error
    except ValidationError as error:
        raise WrongUse("; ".join(f"{path}: {line}" for line in _problems(error))) from error
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise WrongUse(f"{path}: not YAML ({error}); correct it") from error


def _problems(error: ValidationError) -> Iterator[str]:
    for one in error.errors():
        place = ".".join(map(str, one["loc"]))
        if one["type"] == "extra_forbidden":
            yield f"{place}: there is no such key; correct its name, or remove it"
        else:
            yield ": ".join(filter(None, (place, one["msg"].removeprefix("Value error, "))))
