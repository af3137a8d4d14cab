"""The settings that all resumable runs have, and settings from plain values."""

from collections.abc import Callable
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, ValidationError, model_validator

from twinset.contracts.errors import WrongUse, suggested
from twinset.models.encoders.open_clip_files import weights_of_folder
from twinset.training.losses.names import REGULARISERS, V1, V2, Form, Regulariser

#: Threads, or workers: with too many torch crashes.
MOST_AT_ONCE = 256
#: How a run is executed: this decides no byte, or last bits, and is then in the runtime class of the run.
EXECUTION = frozenset({"workers", "device", "threads", "checkpoint_every", "allow_mixed_runtimes"})
#: Settings on which the defaults of others depend.
DECIDING = ("objective", "regulariser")
Share = Annotated[float, Field(ge=0, lt=1)]
OnProgress = Callable[[int, int, dict[str, Any]], None]
S = TypeVar("S", bound=BaseModel)


class RunSettings(BaseModel):
    """What the settings of all resumable runs have.

    Two runs of the same settings, data and runtime class end with the same bytes of weights.

    Attributes:
        model: what is trained.
        data: examples to train on: ``DIR``, ``DIR:SUBSET``, ``tars:DIR``.
        validation: examples to choose the best weights by.
        split, validation_split: only examples of this split; None for all.
        batch: examples of an optimiser step over all processes.
        accumulate: number of parts into which a batch is split to save memory; the loss still sees all of it.
        epochs: passes over the data.
        lr: peak learning rate. betas, eps, weight_decay: of AdamW.
        seed: of random weights, the order of examples, their augmentation, dropout and all else that is sampled.
        precision: of the forward pass; weights and optimiser stay float32.
        transform: ``training``: random resized crops; ``evaluation``: as the model is evaluated.
        validate_every: steps between validations; 0: at the end of each epoch.
        workers: processes that read images; 0: this one. They change no byte.
        device: ``gpu`` is the first CUDA device, or that of each process of torchrun.
        threads: torch's; 0: one a core. checkpoint_every: steps; 0: five minutes. It changes no byte.
        allow_mixed_runtimes: resume on another type of machine, where networks round differently.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    data: tuple[str, ...] = Field(min_length=1)
    validation: tuple[str, ...] = ()
    split: str | None = None
    validation_split: str | None = None
    batch: int = Field(ge=2)
    accumulate: PositiveInt = 1
    epochs: PositiveInt
    lr: float = Field(gt=0, allow_inf_nan=False)
    betas: tuple[Share, Share]
    eps: float = Field(gt=0, allow_inf_nan=False)
    weight_decay: float = Field(ge=0, allow_inf_nan=False)
    seed: int = Field(ge=0, lt=1 << 63)
    precision: Literal["float32", "bfloat16"] = "float32"
    transform: Literal["training", "evaluation"] = "training"
    validate_every: NonNegativeInt = 0
    workers: int = Field(default=0, ge=0, le=MOST_AT_ONCE)
    device: Literal["cpu", "gpu"] = "cpu"
    threads: int = Field(default=0, ge=0, le=MOST_AT_ONCE)
    checkpoint_every: NonNegativeInt = 0
    allow_mixed_runtimes: bool = False

    def defaults(self) -> dict[str, Any]:
        """Each setting as JSON as it is where only model, data and what others depend on are given."""
        fixed = {name: value for name in DECIDING if (value := getattr(self, name, None)) is not None}
        published = self.model_validate({"model": self.model, "data": self.data, **fixed}).model_dump(mode="json")
        return published | {name: type(self).model_fields[name].default for name in fixed}

    @model_validator(mode="after")
    def _of_every_run(self) -> Self:
        if self.batch % self.accumulate:
            raise ValueError(f"accumulate: {self.accumulate} parts do not divide a batch of {self.batch}")
        return self


class EncoderSettings(RunSettings):
    """What the settings of runs that begin with a model of open_clip have.

    Attributes:
        model: name of open_clip or of a model that a package brings (``small-clip``), ``CONFIG.json``, or a folder with
            ``open_clip_config.json``.
        weights: published tag, file, or None for random weights from ``seed``; where it is left out, OpenAI's, or those
            of the folder that ``model`` names.
    """

    weights: str | None = "openai"

    @model_validator(mode="before")
    @classmethod
    def _weights_of_folder(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(model := given.get("model"), str):
            return {"weights": held, **given} if (held := weights_of_folder(model)) else given
        return given


#: Settings of regularisers.
OF_REGULARISERS = ("v1", "v2", "form", "margin", "margin_v1")


class RegularisedSettings(RunSettings):
    """What the settings of runs that may have a regulariser have.

    Attributes:
        regulariser: added to the objective. regulariser_weight: total loss = objective + weight · regulariser; where it
            is left out, that of its source.
        v1, v2: the pairs that EqSim's two forms of equivariance are for. form: whether EqSim is computed as the paper
            writes it or as it was released.
        margin, margin_v1: α of v2 and α₁ of v1, in squared similarity. All five are null where the regulariser does not
            read them.
    """

    regulariser: str | None = None
    regulariser_weight: float = Field(default=0, ge=0, allow_inf_nan=False)
    v1: V1 | None = None
    v2: V2 | None = None
    form: Form | None = None
    margin: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    margin_v1: float | None = Field(default=None, ge=0, allow_inf_nan=False)

    @property
    def losses(self) -> str:
        """Objective and regulariser in words."""
        added = f" + {self.regulariser_weight} · {self.regulariser}" if self.regulariser else ""
        return f"{getattr(self, 'objective', '')}{added}"

    @classmethod
    def find_regulariser(cls, name: str) -> Regulariser:
        """The regulariser of a name as this kind of run has it; raises `UnknownKind`."""
        return REGULARISERS.find(name)

    def regulariser_options(self) -> dict[str, Any]:
        """The settings of the regulariser."""
        return {name: value for name in OF_REGULARISERS if (value := getattr(self, name)) is not None}

    @model_validator(mode="before")
    @classmethod
    def _defaults_of_regulariser(cls, given: Any) -> Any:
        if isinstance(given, dict) and isinstance(name := given.get("regulariser"), str):
            kind = cls.find_regulariser(name)
            return {"regulariser_weight": kind.weight, **kind.settings, **given}
        return given

    @model_validator(mode="after")
    def _fit_regulariser(self) -> Self:
        known = self.find_regulariser(self.regulariser).settings if self.regulariser is not None else {}
        unread = [name for name in self.regulariser_options() if name not in known]
        if self.regulariser is None and self.regulariser_weight:
            unread.append("regulariser_weight")
        if unread:
            raise ValueError(f"{unread[0]}: is no setting of the regulariser {self.regulariser}; leave it out")
        return self


def checked(kind: type[S], given: dict[str, Any]) -> S:
    """Settings of a kind from plain values; raises `WrongUse` that names the settings at fault."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        problems = []
        for problem in error.errors():
            place, message = ".".join(map(str, problem["loc"])), problem["msg"].removeprefix("Value error, ")
            if problem["type"] == "extra_forbidden":
                message = f"unknown; {suggested(str(problem['loc'][-1]), kind.model_fields)}"
            # Checks of several settings have no place; their messages begin with the name of one.
            problems.append(f"{place}: {message}" if place else message)
        raise WrongUse("; ".join(problems)) from error
