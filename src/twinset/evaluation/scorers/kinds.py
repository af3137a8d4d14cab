"""The kinds of models that ``--model KIND:…`` names, and opening one."""

from collections.abc import Sequence

from twinset.contracts.doors import Registry, UnknownKind
from twinset.contracts.errors import WrongUse
from twinset.models.device import load_within_memory
from twinset.models.encoders.contract import ModelKind, Running, Scorer
from twinset.models.files import BROUGHT, brought_model

KINDS = {
    "open_clip": "twinset.models.encoders.open_clip_models:OPEN_CLIP",
    "clip": "twinset.models.encoders.transformers_encoders:CLIP",
    "siglip": "twinset.models.encoders.transformers_encoders:SIGLIP",
    "blip-itm": "twinset.models.encoders.blip_models:BLIP_ITM",
    "blip-itc": "twinset.models.encoders.blip_models:BLIP_ITC",
    "blip2-itm": "twinset.models.encoders.blip_models:BLIP2_ITM",
    "blip2-itc": "twinset.models.encoders.blip_models:BLIP2_ITC",
    "vilt": "twinset.models.encoders.fusion_models:VILT",
    "flava": "twinset.models.encoders.fusion_models:FLAVA",
    "openai-chooser": "twinset.evaluation.scorers.prompted:CHOOSER",
    "openai-yesno": "twinset.evaluation.scorers.prompted:YES_OR_NO",
    "openai-vqascore": "twinset.evaluation.scorers.prompted:VQASCORE",
    "vlm": "twinset.evaluation.scorers.prompted:VLM",
    "image-only": "twinset.evaluation.scorers.composers:IMAGE_ONLY",
    "text-only": "twinset.evaluation.scorers.composers:TEXT_ONLY",
    "image+text": "twinset.evaluation.scorers.composers:IMAGE_TEXT",
    "combiner": "twinset.evaluation.scorers.composers:COMBINER",
    "focus-attribute": "twinset.evaluation.scorers.composers:FOCUS_ATTRIBUTE",
    "change-attribute": "twinset.evaluation.scorers.composers:CHANGE_ATTRIBUTE",
    "detections": "twinset.evaluation.features.detections:DETECTIONS",
    "random": "twinset.models.encoders.open_clip_models:RANDOM",
}
MODELS = Registry[ModelKind]("kind of model", ModelKind, __name__, "twinset.evaluation_models")


def open_model(text: str, running: Running | None = None) -> Scorer:
    """The model of ``KIND:…`` or of a name that a package brings; raises `WrongUse`, `BuildFailed` without memory."""
    kind, parts = _read(text)
    try:
        return load_within_memory(text, lambda: kind.open(text, parts, running or Running()))
    except ImportError as error:
        raise WrongUse(f"--model {text}: {error}; pip install 'twinset[models]'") from error


def check_model(text: str) -> None:
    """Raise `WrongUse` as `open_model` does, as far as it can be told without torch."""
    kind, parts = _read(text)
    kind.check(text, parts)


def note_on(text: str) -> str:
    """What reports have to say of a model, or of the encoder in it: a sentence, or nothing."""
    if (brought := brought_model(text)) is not None:
        return brought.notes
    kind, parts = _read(text)
    return kind.note or (note_on(parts[-1]) if "ENCODER" in kind.form else "")


def _read(text: str) -> tuple[ModelKind, list[str]]:
    """A kind, and what follows the colon."""
    brought = brought_model(text)
    named, _, rest = (f"{brought.scorer}:{brought.folder}" if brought is not None else text).partition(":")
    name, slash, prompt = named.partition("/")
    try:
        kind = MODELS.find(name, BROUGHT.kinds())
    except UnknownKind as error:
        raise WrongUse(f"--model {text}: {error}. Write KIND:…, such as open_clip:ViT-B-32:openai") from error
    if slash and not (prompt and kind.prompts):
        raise WrongUse(f"--model {text}: {name} is not asked by a prompt; write {name}:{kind.form}")
    parts = rest.split(":", kind.parts - 1)
    if not all(parts):
        raise WrongUse(f"--model {text}: names no model; write {name}:{kind.form}")
    return kind, parts


def with_prompts(models: Sequence[str], prompts: Sequence[str]) -> list[str]:
    """Models, those that a prompt asks once for each: ``KIND/PROMPT:…``. Raises `WrongUse` where none takes one."""
    asked = [text for text in models if _read(text)[0].prompts]
    if prompts and not asked:
        raise WrongUse(f"--prompt {prompts[0]}: none of the models is asked by a prompt; name a vlm: or openai- model")
    prompted = list[str]()
    for text in models:
        named = text in asked and "/" not in text.partition(":")[0]
        prompted += [text.replace(":", f"/{prompt}:", 1) for prompt in prompts if named] or [text]
    return prompted
