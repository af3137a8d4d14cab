"""Every kind of networks: how a tiny one is saved, and how recipes and commands open it."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import save_file

from tests.evaluation.scorers.opened import FAST
from tests.generators.caption_scores import tiny_scorers
from tests.models.diffusion.tiny_models import save_clip, save_small
from tests.models.diffusion.tiny_pipelines import save as save_pipeline
from tests.models.language_models import tiny_model
from tests.models.visual_questions.tiny_models import save_blip, save_vilt
from tests.models.visual_questions.tiny_vision_language import save as save_vision_language
from tests.tiny_encoders import open_clip_config, open_clip_network, save_transformers
from twinset.evaluation.scorers.kinds import open_model
from twinset.filters.clip_scores import TrueOfBoth
from twinset.models.diffusion.settings import DiffusersImages
from twinset.models.language_models.settings import Transformers as LanguageModel
from twinset.models.visual_questions.settings import VisionLanguage, VisualQuestions


@dataclass(frozen=True)
class Kind:
    """How a kind of networks is saved and opened. weights: its file in the folder."""

    save: Callable[[Path], Any]
    open: Callable[[Path], Any]
    weights: str = "model.safetensors"


def save_open_clip(folder: Path) -> None:
    config = json.loads(open_clip_config(folder).read_text())
    (folder / "tiny.json").unlink()
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": config, "preprocess_cfg": {}}))
    save_file(open_clip_network().state_dict(), folder / "open_clip_model.safetensors")


def save_diffusion(folder: Path) -> None:
    shutil.copytree(save_small(folder.parent / "made"), folder)


def save_combiner(folder: Path) -> None:
    from twinset.models.encoders.combiner import CombinerNetwork

    folder.mkdir()
    save_file(CombinerNetwork(8, 4, 4).state_dict(), folder / "model.safetensors")


def filtered(folder: Path) -> Any:
    return TrueOfBoth(kind="true-of-both", model=str(folder)).open()._clip


def scorer(kind: str) -> Callable[[Path], Any]:
    return lambda folder: tiny_scorers.settings(kind, folder).open("cpu")


def evaluated(kind: str) -> Callable[[Path], Any]:
    return lambda folder: open_model(f"{kind}:{folder}", FAST)


def combined(folder: Path) -> Any:
    config = open_clip_config(folder.parent)
    return open_model(f"combiner:{folder / 'model.safetensors'}:random:{config}", FAST)


def saved_as(kind: str) -> Callable[[Path], Any]:
    return lambda folder: save_transformers(folder, kind)


def save_flux(folder: Path) -> None:
    shutil.copytree(save_pipeline(folder.parent / "made", "FluxPipeline"), folder)


def pipeline(folder: Path) -> Any:
    return DiffusersImages(kind="diffusers", model=str(folder), licence="MIT").open().pipeline


def answering(folder: Path) -> Any:
    return VisualQuestions(kind="vqa", model=str(folder)).open().loaded


#: A Python file that leaves a marker where it is run.
HOSTILE = """
from pathlib import Path

Path(__file__).with_name("was_run").touch()
MARKER = "{marker}"
Path(MARKER).touch()


class Evil:
    pass
"""
OPEN_CLIP = "open_clip_model.safetensors"
DIFFUSERS = "diffusion_pytorch_model.safetensors"
KINDS = {
    "filter of pairs, CLIP": Kind(save_clip, filtered),
    "filter of pairs, open_clip": Kind(save_open_clip, filtered, OPEN_CLIP),
    "vera": Kind(tiny_scorers.save_vera, scorer("vera")),
    "cola": Kind(tiny_scorers.save_cola, scorer("cola"), "pytorch_model.bin"),
    "evaluation, open_clip": Kind(save_open_clip, evaluated("open_clip"), OPEN_CLIP),
    "evaluation, clip": Kind(saved_as("clip"), evaluated("clip")),
    "evaluation, siglip": Kind(saved_as("siglip"), evaluated("siglip")),
    "evaluation, blip-itm": Kind(saved_as("blip"), evaluated("blip-itm")),
    "evaluation, blip2-itc": Kind(saved_as("blip-2"), evaluated("blip2-itc")),
    "evaluation, vilt": Kind(saved_as("vilt"), evaluated("vilt")),
    "evaluation, flava": Kind(saved_as("flava"), evaluated("flava")),
    "evaluation, combiner": Kind(save_combiner, combined),
    "questions, blip": Kind(save_blip, answering),
    "questions, vilt": Kind(save_vilt, answering),
    "questions, vlm": Kind(
        lambda at: save_vision_language(at, "idefics3"),
        lambda at: VisionLanguage(kind="vlm", model=str(at)).open().loaded,
    ),
    "writer": Kind(tiny_model.save, lambda at: LanguageModel(kind="transformers", model=str(at)).open().loaded),
    "diffusion, unet": Kind(save_diffusion, pipeline, f"unet/{DIFFUSERS}"),
    "pipeline, transformer": Kind(save_flux, pipeline, f"transformer/{DIFFUSERS}"),
    "pipeline, text": Kind(save_flux, pipeline, "text_encoder_2/model.safetensors"),
}
