"""The contracts of filters, caption scorers, engines, review questions, losses, evaluation models and metrics.

Each kind of a door has a case here; a new kind without one fails, and says what to write.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from tests.filters.test_image_filters import frame, noise, pair, plain
from tests.generators.caption_scores.tiny_scorers import MODELS as SCORERS
from tests.generators.caption_scores.tiny_scorers import settings
from tests.models.diffusion.tiny_models import save_clip
from twinset import check_filter, check_scorer
from twinset.contracts.candidate import CaptionedCandidate
from twinset.contracts.doors import Registry
from twinset.contracts.errors import TwinsetError, WrongUse
from twinset.contracts.parts import FILTERS, check_settings
from twinset.evaluation.metrics.row_values import RowValues
from twinset.evaluation.metrics.score_kinds import METRICS
from twinset.evaluation.scorers.kinds import MODELS, open_model
from twinset.generators.caption_scores.scorers.scorer import CAPTION_SCORERS
from twinset.generators.decisions.question import QUESTIONS, TaskCandidate, question_of
from twinset.models.encoders.contract import ModelKind
from twinset.models.image_engine import IMAGE_ENGINES
from twinset.models.language_models.settings import LANGUAGE_MODELS
from twinset.training.losses.features import Features
from twinset.training.losses.names import OBJECTIVES, REGULARISERS

Samples = Sequence[Any]
ROOT = Path(__file__).resolve().parents[3]
SPOTS = np.asarray(Image.fromarray(noise(0, 0, 256)).resize((400, 320), Image.Resampling.BICUBIC))


def captions(*pairs: tuple[str, str]) -> Samples:
    """Candidates with one caption an image."""
    return [
        CaptionedCandidate(key=f"s-{n}", group="g", captions0=(a,), captions1=(b,)) for n, (a, b) in enumerate(pairs)
    ]


def pairs() -> Samples:
    """Equal images, one whose middle differs, one that has moved, and another picture."""
    middle = SPOTS.copy()
    middle[60:140, 80:200] = 30
    pictures = (SPOTS, middle, np.roll(SPOTS, 4, axis=0), plain(200, 10, 10, 320, 400))
    return [pair(SPOTS, picture, f"p{n}") for n, picture in enumerate(pictures)]


def captioned_pairs() -> Samples:
    words = (("A red circle.",), ("A blue circle.",))
    return [replace(uncaptioned, captions0=words[0], captions1=words[1]) for uncaptioned in pairs()]


def faces() -> Samples:
    face = np.asarray(Image.open(ROOT / "demo/twinset_demo/samples/face.jpg").convert("RGB"))
    return [frame("face", face), frame("noise", noise(1, 0, 256))]


#: By kind: settings beside the kind, and samples.
JUDGED: dict[str, tuple[dict[str, str], Callable[[], Samples]]] = {
    "blank": ({}, lambda: [frame("grey", plain(9, 9, 9)), frame("noise", noise(0, 0, 256))]),
    "directional-similarity": ({"model": "CLIP"}, captioned_pairs),
    "drift": ({}, pairs),
    "equal-captions": ({}, lambda: captions(("A dog.", "a dog"), ("A dog.", "A cat."))),
    "faces": ({}, faces),
    "motion-words": ({}, lambda: captions(("A man looks up.", "A man."), ("A dog.", "A cat."))),
    "near-identical": ({}, pairs),
    "scene-cut": ({}, pairs),
    "true-of-both": ({"model": "CLIP"}, captioned_pairs),
}


@pytest.mark.parametrize("kind", FILTERS.kinds())
def test_a_filter_keeps_the_contract(kind: str, tmp_path: Path) -> None:
    assert kind in JUDGED, f"filter {kind} has no case: write its settings and samples in JUDGED"
    given, samples = JUDGED[kind]
    if given.get("model") == "CLIP":
        given = {"model": str(save_clip(tmp_path / "clip"))}
    check_filter(FILTERS.find(kind).model_validate({"kind": kind, **given}), samples())


@pytest.mark.parametrize("kind", CAPTION_SCORERS.kinds())
def test_a_scorer_keeps_the_contract(kind: str, tmp_path: Path) -> None:
    assert kind in SCORERS, f"caption scorer {kind} has no tiny model: write one in SCORERS"
    check_scorer(settings(kind, SCORERS[kind](tmp_path / kind)))


SERVER = {"model": "m", "base_url": "http://127.0.0.1:1/v1"}
#: By door and kind: settings beside the kind; MODEL stands for a folder that is absent.
ENGINES: dict[tuple[str, str], dict[str, Any]] = {
    ("image engine", "diffusers"): {"model": "MODEL", "licence": "CC0-1.0"},
    ("image engine", "images-server"): {**SERVER, "licence": "CC0-1.0"},
    ("language model", "openai"): SERVER,
    ("language model", "transformers"): {"model": "MODEL"},
    ("language model", "vlm"): {"model": "MODEL"},
    ("language model", "vqa"): {"model": "MODEL"},
}
DOORS: tuple[Registry[Any], ...] = (IMAGE_ENGINES, LANGUAGE_MODELS)
#: Twinset's own: those of other packages have tests in their packages.
ALL_ENGINES = [(door, kind) for door in DOORS for kind in door.own()]


@pytest.mark.parametrize(("door", "kind"), ALL_ENGINES, ids=[f"{door.what} {kind}" for door, kind in ALL_ENGINES])
def test_an_engine_keeps_the_contract(door: Registry[Any], kind: str, tmp_path: Path) -> None:
    assert (door.what, kind) in ENGINES, f"{door.what} {kind} has no case: write its settings in ENGINES"
    absent = str(tmp_path / "absent")
    given = {name: absent if value == "MODEL" else value for name, value in ENGINES[door.what, kind].items()}
    settings = door.find(kind).model_validate({"kind": kind, **given})
    check_settings(settings)
    assert settings.kind == kind and type(settings).__doc__
    if absent in given.values():
        with pytest.raises(TwinsetError, match="absent"):
            settings.check_inputs("engine", ("models",))


#: By kind: the number of texts and of images of a task.
SHOWN = {"best-image": (1, 3), "fits-caption": (1, 2), "keep-pair": (2, 2), "match": (2, 1), "rank-images": (1, 3)}


def task(kind: str) -> TaskCandidate:
    assert kind in SHOWN, f"review question {kind} has no case: write what it shows in SHOWN"
    texts, images = SHOWN[kind]
    words = tuple(f"text {n}" for n in range(texts))
    empty = ("",) * images
    shown = {"images": tuple(f"image{n}" for n in range(images)), "image_tars": empty, "image_sha256s": empty}
    return TaskCandidate(key="t-a", group="g", question=kind, texts=words, subject="s", **shown)


@pytest.mark.parametrize("kind", QUESTIONS.own())
def test_a_question_keeps_the_contract(kind: str) -> None:
    question, asked = question_of(kind), task(kind)
    assert question.name == kind and question.words.title and question.words.instructions
    layout = question.layout(asked)
    assert layout == question.layout(asked) and len({*layout.values}) == len(layout.values) >= 2
    assert {*question.drops} <= {*layout.values}
    assert all(question.takes(asked, choice) for choice in layout.values) and not question.takes(asked, "of no option")


def features(order: list[int]) -> Features:
    """Six examples with negatives, unit vectors of 8 channels."""
    generator = torch.Generator().manual_seed(0)
    parts = torch.nn.functional.normalize(torch.randn(4, 6, 8, generator=generator), dim=-1)
    return Features(*(part[order].clone().requires_grad_() for part in parts))


def value(loss: Any, order: list[int], given: Features | None = None) -> torch.Tensor:
    loss_value, figures = loss(given or features(order), torch.tensor(20.0), torch.Generator().manual_seed(0))
    assert loss_value.ndim == 0 and torch.isfinite(loss_value)
    assert all(isinstance(figure, float) for figure in figures.values())
    return loss_value  # type: ignore[no-any-return]


LOSSES = [*product(["objective"], OBJECTIVES.own()), *product(["regulariser"], REGULARISERS.own())]


@pytest.mark.parametrize(("what", "name"), LOSSES)
def test_a_loss_keeps_the_contract(what: str, name: str) -> None:
    loss = OBJECTIVES.find(name).open() if what == "objective" else REGULARISERS.find(name).open()
    given = features([*range(6)])
    first = value(loss, [], given)
    first.backward()  # type: ignore[no-untyped-call]
    assert given.images.grad is not None and torch.isfinite(given.images.grad).all() and given.images.grad.any()
    assert value(loss, [*range(6)]) == first
    if "released" not in name and name != "hardneg":  # those sample the pairs that they compare
        assert torch.isclose(value(loss, [3, 1, 5, 0, 2, 4]), first, rtol=1e-5)


#: What --model writes after the kind, where files are named: ABSENT stands for a path that is not there.
ASKED = {
    **dict.fromkeys(("clip", "siglip", "blip-itm", "blip-itc", "blip2-itm", "blip2-itc", "vilt", "flava"), "ABSENT"),
    **{"open_clip": "ViT-B-32:ABSENT", "random": "ABSENT.json", "vlm": "ABSENT", "detections": "ABSENT"},
    **dict.fromkeys(("image-only", "text-only", "image+text"), "clip:ABSENT"),
    **dict.fromkeys(("combiner", "focus-attribute", "change-attribute"), "ABSENT:clip:ABSENT"),
}
#: A server is asked when a run begins.
SERVED = {"openai-chooser", "openai-yesno", "openai-vqascore"}


@pytest.mark.parametrize("kind", MODELS.own())
def test_a_kind_of_model_says_what_is_written_and_names_a_file_that_is_absent(kind: str, tmp_path: Path) -> None:
    model = MODELS.find(kind)
    assert isinstance(model, ModelKind) and model.form and model.parts >= 1
    assert kind in ASKED or kind in SERVED, f"kind of model {kind} has no case: write one in ASKED"
    if kind in ASKED:
        with pytest.raises(WrongUse, match="absent"):
            open_model(f"{kind}:{ASKED[kind].replace('ABSENT', str(tmp_path / 'absent'))}")


@pytest.mark.parametrize("name", METRICS.kinds())
def test_a_metric_is_a_function_of_columns_that_gives_row_values(name: str) -> None:
    metric = METRICS.find(name)
    columns = [*inspect.signature(metric).parameters]
    values = metric(**{column: np.array([0.0, 1.0]) for column in columns})
    strict = values.strict if isinstance(values, RowValues) else values
    assert columns and metric.__doc__ and all(np.shape(column) == (2,) for column in strict.values())
