"""What is tested, written down before any arm is trained: arms, test sets, claims, seeds and thresholds.

All of it is data, in ``design.yaml`` beside this module. The report names its digest. The record of a run has a digest
of what decides that run: after a change of the design only runs that it concerns are done again.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, PositiveInt, ValidationError, model_validator

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.training.losses.names import OBJECTIVES

DESIGN = Path(__file__).with_name("design.yaml")


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class TestSet(_Frozen):
    """Examples that are tested: a subset of the world.

    optional: it is left out where the subset was not built. tuning: it was looked at while the base was tuned, so that
    no arm is tested on it.
    """

    __test__ = False  # not a test of pytest's

    title: str
    subset: str
    asks: Literal["pairs", "queries"]
    optional: bool = False
    tuning: bool = False


class Arm(_Frozen):
    """One way to train, or one way to answer.

    kind: ``clip`` and ``combiner`` train, ``rule`` does not.
    settings: what differs from `Design.training` (``clip``) or `Design.combiner` (``combiner``).
    model: as ``twinset eval run --model`` takes it, with ``{self}`` and ``{base}`` for folders of weights.
    same_weights: arm with which it must agree in every byte: a control of the code, not of a claim.
    """

    title: str
    kind: Literal["clip", "combiner", "rule"] = "clip"
    asks: Literal["pairs", "queries"] = "pairs"
    settings: Mapping[str, Any] = {}
    model: str = "open_clip:{self}"
    same_weights: str | None = None


class Claim(_Frozen):
    """A statement that one arm is better than some others, in one figure of their scores.

    says: in words. paper, where: that claims it. better, than: arms; the difference is better - than, so that a
    positive one speaks for the claim. figure: of `evaluation.metrics`, such as ``group`` or ``recall@1``.
    published: the difference that the paper has, in percentage points, by arm of ``than``; none where it has none.
    """

    says: str
    paper: str
    where: str
    better: tuple[str, ...] = Field(min_length=1)
    than: tuple[str, ...] = Field(min_length=1)
    figure: str
    published: Mapping[str, float] = {}

    @property
    def comparisons(self) -> tuple[tuple[str, str], ...]:
        """Pairs of arms: each of ``better`` against each of ``than``."""
        return tuple((a, b) for a in self.better for b in self.than)


class Budget(_Frozen):
    """Time that a whole run may take."""

    minutes: PositiveInt
    cores: PositiveInt


class Gate(_Frozen):
    """The base of the calibration seed must score between two bounds (percent) on kinds of changes of a test set.

    kinds: categories of the test set, by what they are called together.
    """

    test: str
    figure: str
    low: float
    high: float
    kinds: Mapping[str, tuple[str, ...]]


class Design(_Frozen):
    """Everything that is decided before the arms run.

    recipe, subsets: of the world; what of it is built.
    seeds: each has its own base, and its own order of examples. calibration_seeds: the base was tuned on the first; how
        arms differ on them, and how much these seeds differ, says what can be detected (`studies.science.power`).
    budget: of a whole run. power: percent with which a difference is to be detected.
    least: percentage points that a supported claim must reach. resamples: of the bootstrap.
    primary: test set whose verdicts decide claims; the others say how far these carry.
    base, training, combiner, detectors: settings of `training.clip.settings.ClipSettings`, of `training.combiner` and
        of `training.detectors`; ``data`` names subsets, ``model`` of the base a file beside the design.
    full: what ``--full`` changes, by key of the design.
    """

    recipe: str
    subsets: tuple[str, ...]
    seeds: tuple[int, ...] = Field(min_length=2)
    calibration_seeds: tuple[int, ...] = Field(min_length=2)
    budget: Budget
    least: float
    power: float = Field(gt=0, lt=100)
    resamples: PositiveInt
    primary: Mapping[Literal["pairs", "queries"], str]
    gate: Gate
    tests: Mapping[str, TestSet]
    base: Mapping[str, Any]
    training: Mapping[str, Any]
    combiner: Mapping[str, Any]
    detectors: Mapping[str, Any]
    arms: Mapping[str, Arm]
    claims: Mapping[str, Claim]
    full: Mapping[str, Any] = {}

    @model_validator(mode="after")
    def _names_are_known(self) -> Design:
        unknown = {one for claim in self.claims.values() for one in (*claim.better, *claim.than)} - {*self.arms}
        unknown |= {arm.same_weights for arm in self.arms.values() if arm.same_weights} - {*self.arms}
        if unknown:
            raise ValueError(f"claims and controls name arms that there are not: {', '.join(sorted(unknown))}")
        if missing := {*self.primary.values(), self.gate.test} - {*self.tests}:
            raise ValueError(f"there is no test set {', '.join(sorted(missing))}")
        if not self.tests[self.gate.test].tuning or any(self.tests[one].tuning for one in self.primary.values()):
            raise ValueError("tests: the gate needs a test set for tuning, and claims one that is not")
        if {*self.calibration_seeds} & {*self.seeds}:
            raise ValueError("calibration_seeds: one of them is one of the seeds; the arms must not be tested on it")
        for name, claim in self.claims.items():
            if unknown := {*claim.published} - {*claim.than}:
                raise ValueError(f"{name}: published names arms that it does not compare: {', '.join(sorted(unknown))}")
            asks = {self.arms[one].asks for one in (*claim.better, *claim.than)}
            if len(asks) > 1:
                raise ValueError(f"{name}: its arms answer different test sets")
        return self

    @cached_property
    def digest(self) -> str:
        """Of all that is decided."""
        return digest(self.model_dump(mode="json", exclude={"full"}))

    @property
    def claimed(self) -> list[str]:
        """Arms that claims are about, in the order of the design."""
        named = {one for claim in self.claims.values() for one in (*claim.better, *claim.than)}
        return [name for name in self.arms if name in named]

    def tuning(self, asks: str) -> str | None:
        """The test set on which arms of the calibration seeds are scored."""
        return next((name for name, one in self.tests.items() if one.tuning and one.asks == asks), None)

    def asks(self, claim: Claim) -> Literal["pairs", "queries"]:
        """Which kind of test sets a claim is about."""
        return self.arms[claim.better[0]].asks

    def clip_settings(self, arm: str | None) -> dict[str, Any]:
        """Settings of an arm that trains a CLIP, or of the base (None), without places and seed."""
        return dict(self.base) if arm is None else {**self.training, **self.arms[arm].settings}

    def settings(self, arm: str | None) -> dict[str, Any]:
        """Settings of whatever an arm, or the base (None), trains; none where it trains nothing."""
        if arm is None or self.arms[arm].kind == "clip":
            return self.clip_settings(arm)
        return {**self.combiner, **self.arms[arm].settings} if self.arms[arm].kind == "combiner" else {}

    def encoded(self, arm: str) -> tuple[int, int]:
        """Images and texts that training an arm encodes; nothing for what is not trained."""
        if self.arms[arm].kind != "clip":
            return 0, 0
        settings = self.clip_settings(arm)
        examples = settings["steps"] * settings["batch"]
        roles = OBJECTIVES.get(settings.get("objective", "infonce")).roles
        images = sum(role.endswith("image") for role in roles)
        return examples * images, examples * (len(roles) - images)


def read_design(full: bool = False, seeds: int | None = None, path: Path = DESIGN) -> Design:
    """The design.

    Args:
        full: with the changes that it lists under ``full``.
        seeds: only the first of them, or more of them, counted on from the last.

    Raises:
        WrongUse: the file is not a design; names the keys at fault.
    """
    try:
        found = yaml.safe_load(path.read_text("utf-8"))
        if not isinstance(found, dict):
            raise WrongUse(f"{path}: not a design; write its keys as a mapping")
        if full:
            found |= {
                key: {**found[key], **value} if isinstance(value, dict) else value
                for key, value in found.get("full", {}).items()
            }
        if seeds is not None:
            there = found["seeds"]
            found["seeds"] = [*there, *range(there[-1] + 1, there[-1] + 1 + seeds)][:seeds]
        return Design.model_validate(found)
    except (yaml.YAMLError, OSError, KeyError) as error:
        raise WrongUse(f"{path}: cannot be read as a design: {error}") from error
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
        raise WrongUse(f"{path}: {problems}") from error
