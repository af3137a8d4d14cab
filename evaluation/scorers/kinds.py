"""The kinds of models that ``--model KIND:…`` names, and opening one."""

from twinset.manifests.doors import Registry, UnknownKind
from twinset.manifests.errors import WrongUse
from twinset.models.encoders.contract import ModelKind, Running, Scorer
from twinset.models.files import BROUGHT, brought_model

KINDS = {
    "open_clip": "twinset.models.encoders.open_clip_models:OPEN_CLIP",
    "clip": "twinset.models.encoders.transformers_encoders:CLIP",
    "siglip": "twinset.models.encoders.transformers_encoders:SIGLIP",
    "blip-itm": "twinset.models.encoders.transformers_encoders:BLIP_ITM",
    "vilt": "twinset.models.encoders.transformers_encoders:VILT",
    "flava": "twinset.models.encoders.transformers_encoders:FLAVA",
    "openai-chooser": "twinset.evaluation.scorers.openai_server:CHOOSER",
    "openai-yesno": "twinset.evaluation.scorers.openai_server:YES_OR_NO",
    "openai-vqascore": "twinset.evaluation.scorers.openai_server:VQASCORE",
    "image-only": "twinset.evaluation.scorers.composed:IMAGE_ONLY",
    "text-only": "twinset.evaluation.scorers.composed:TEXT_ONLY",
    "image+text": "twinset.evaluation.scorers.composed:IMAGE_TEXT",
    "combiner": "twinset.evaluation.scorers.composed:COMBINER",
    "random": "twinset.models.encoders.open_clip_models:RANDOM",
}
INSTALL = "pip install 'twinset[models]'"
MODELS = Registry[ModelKind]("kind of model", ModelKind, __name__, "twinset.evaluation_models", objects=True)


def open_model(text: str, running: Running | None = None) -> Scorer:
    """Load the model that ``KIND:NAME[:CHECKPOINT]``, or the name of one that an installed package brings, names.
    Raises `WrongUse`: there is no such kind, name or file, or the file is not of this model.
    """
    found, parts = _read(text)
    try:
        return found.open(text, parts, running or Running())
    except ImportError as error:
        raise WrongUse(f"--model {text}: {error}; {INSTALL}") from error


def check_model(text: str) -> None:
    """Raise `WrongUse` as `open_model` does, as far as it can be told without torch."""
    found, parts = _read(text)
    try:
        found.check(text, parts)
    except ImportError as error:
        raise WrongUse(f"--model {text}: {error}; {INSTALL}") from error


def _read(text: str) -> tuple[ModelKind, list[str]]:
    brought = brought_model(text)
    kind, _, rest = (f"{brought.scorer}:{brought.folder}" if brought is not None else text).partition(":")
    try:
        found = MODELS.get(kind, BROUGHT.kinds())
    except UnknownKind as error:
        raise WrongUse(f"--model {text}: {error}. Write KIND:…, such as open_clip:ViT-B-32:openai") from error
    parts = rest.split(":", found.parts - 1)
    if not all(parts):
        raise WrongUse(f"--model {text}: names no model; write {kind}:{found.form}")
    return found, parts
