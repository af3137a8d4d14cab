"""The model that ships draws what captions say, and what it draws can be edited."""

import numpy as np
import pytest
import torch

from studies.small_diffusion.edit_report import ways
from studies.small_diffusion.edits import draw_edits, make, outcome
from studies.small_diffusion.measure import draw, held_out_scenes
from studies.small_diffusion.report import SHIPPED
from twinset.generators.edited_pairs.vocabulary import KINDS
from twinset.generators.prompt_to_prompt.pipeline import PromptToPromptPipeline, load_model
from twinset_demo.models import SMALL
from twinset_demo.small_world.checker import judge, read_picture

MODEL = SMALL.folder
STEPS, GUIDANCE = SHIPPED.steps, SHIPPED.guidance
MOST = 20 * 2**20  # bytes


@pytest.fixture(scope="module")
def pipeline() -> PromptToPromptPipeline:
    return load_model(str(MODEL), "cpu", torch.float32)


def test_it_is_small_and_names_no_folder_of_the_machine_that_made_it() -> None:
    files = [path for path in MODEL.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < MOST
    assert not {path.suffix for path in files} - {".json", ".safetensors", ".md"}
    for path in MODEL.rglob("*.json"):
        assert "_name_or_path" not in path.read_text()


@pytest.mark.slow
def test_it_draws_captions_that_it_never_saw() -> None:
    scenes = held_out_scenes(24, seed=5)
    pictures = draw(MODEL, scenes, steps=STEPS, guidance=GUIDANCE, seed=5, batch=24, device="cpu")
    verdicts = [judge(read_picture(picture), scene) for picture, scene in zip(pictures, scenes, strict=True)]
    for attribute in ("colour", "shape", "count", "place", "time", "style"):
        assert np.mean([right[attribute] for right in verdicts if attribute in right]) > 0.8, attribute


@pytest.mark.slow
def test_edits_succeed(pipeline: PromptToPromptPipeline) -> None:
    edits = [edit for kind in KINDS for edit in draw_edits(kind, 4, seed=11)]
    how = ways((SHIPPED.cross_replace_steps, SHIPPED.self_replace_steps))["with local blend"]
    made = make(pipeline, edits, how, steps=STEPS, guidance=GUIDANCE, batch=len(edits))
    came = [outcome(*both) for both in zip(edits, made, strict=True)]
    assert sum(one.edited for one in came) >= 10
    # Grey levels: an eye sees no change outside of the edited things.
    assert np.nanmean([one.change for one in came if one.edited]) < 4
