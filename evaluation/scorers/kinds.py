"""The kinds of models that ``--model KIND:…`` names, and opening one; a kind is one line here."""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NamedTuple

from twinset.manifests.errors import WrongUse
from twinset.models.encoders.contract import Running, Scorer
from twinset.models.files import brought_model

Open = Callable[[str, Sequence[str], Running], Scorer]


class Kind(NamedTuple):
    """A kind of models.

    place: module and function that opens one, of `Open`; imported only then.
    form: what is written after the colon. parts: at most this number, so that the last one may hold colons.
    """

    place: str
    form: str
    parts: int = 1


KINDS = {
    "open_clip": Kind("twinset.models.encoders.open_clip_models:open_open_clip", "NAME:TAG|FILE, or FOLDER", 2),
    "clip": Kind("twinset.models.encoders.transformers_encoders:ClipEncoder", "FOLDER"),
    "siglip": Kind("twinset.models.encoders.transformers_encoders:SiglipEncoder", "FOLDER"),
    "blip-itm": Kind("twinset.models.encoders.fusion:Blip", "FOLDER"),
    "vilt": Kind("twinset.models.encoders.fusion:Vilt", "FOLDER"),
    "flava": Kind("twinset.models.encoders.fusion:Flava", "FOLDER"),
    "openai-chooser": Kind("twinset.evaluation.scorers.openai_server:open_chooser", "MODEL"),
    "openai-yesno": Kind("twinset.evaluation.scorers.openai_server:open_yes_no", "MODEL"),
    "openai-vqascore": Kind("twinset.evaluation.scorers.openai_server:open_vqa_score", "MODEL"),
    "image-only": Kind("twinset.evaluation.scorers.composed:open_image_only", "ENCODER"),
    "text-only": Kind("twinset.evaluation.scorers.composed:open_text_only", "ENCODER"),
    "image+text": Kind("twinset.evaluation.scorers.composed:open_image_text", "ENCODER"),
    "combiner": Kind("twinset.evaluation.scorers.composed:open_combiner", "FILE:ENCODER", 2),
    "random": Kind("twinset.models.encoders.open_clip_models:open_random", "NAME[:SEED]", 2),
}


def open_model(text: str, running: Running | None = None) -> Scorer:
    """Load the model that ``KIND:NAME[:CHECKPOINT]``, or the name of one that an installed package brings, names.

    Raises:
        WrongUse: there is no such kind, name or file, or the file is not of this model.
    """
    brought = brought_model(text)
    kind, _, rest = (f"{brought.scorer}:{brought.folder}" if brought is not None else text).partition(":")
    found = KINDS.get(kind)
    if found is None or not rest or not all(parts := rest.split(":", found.parts - 1)):
        near = get_close_matches(kind, KINDS, 1, 0.5)
        known = near if near and found is None else [kind] if found else list(KINDS)
        forms = ", ".join(f"{one}:{KINDS[one].form}" for one in known)
        problem = f"{kind!r} is not a kind of model" if found is None else "names no model"
        raise WrongUse(f"--model {text}: {problem}; write {forms}, such as open_clip:ViT-B-32:openai")
    module, _, function = found.place.partition(":")
    opening: Any = getattr(import_module(module), function)
    try:
        scorer: Scorer = opening(text, parts, running or Running())
    except ImportError as error:
        raise WrongUse(f"--model {text}: {error}; pip install 'twinset[models]'") from error
    return scorer
