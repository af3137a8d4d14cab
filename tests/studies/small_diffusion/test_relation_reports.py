"""The report on pictures of two things, on a random model that can draw nothing; and the model that ships."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from studies.small_diffusion import measure_relations
from studies.small_diffusion.measure import draw
from studies.small_diffusion.measure_relations import arrangement_fidelity, held_out_arrangements
from studies.small_diffusion.report import SHIPPED, Share
from tests.generators.prompt_to_prompt import tiny_models
from twinset.contracts.errors import WrongUse
from twinset_demo.models import SMALL_RELATIONS
from twinset_demo.small_diffusion.relations import is_held_out
from twinset_demo.small_world.relations import ATTRIBUTES, judge_arrangement, read_arrangement_picture

MODEL = SMALL_RELATIONS.folder
MOST = 20 * 2**20  # bytes


@pytest.mark.parametrize("swaps", [None, "things", "colours"])
def test_what_is_drawn_is_measured(swaps: str | None, tmp_path: Path) -> None:
    model = tiny_models.save_small(tmp_path / "model")
    arguments = ["--model", str(model), "--prompts", "4", "--steps", "1", "--device", "cpu", "--out", str(tmp_path)]
    measure_relations.main([*arguments, *(["--swaps", swaps] if swaps else [])])
    report = json.loads((tmp_path / "fidelity.json").read_text())
    last = ["both of caption and swap"] if swaps else []
    assert list(report["shares"]) == [*ATTRIBUTES, "all that the caption says", *last]
    assert report["shares"]["all that the caption says"]["right"] == 0
    assert Image.open(tmp_path / "fidelity.png").width > 128


def test_captions_are_such_as_training_never_saw() -> None:
    scenes = held_out_arrangements(60, seed=0)
    assert scenes[:20] == held_out_arrangements(20, seed=0)
    assert all(map(is_held_out, scenes)) and len({scene.caption() for scene in scenes}) == 60
    with pytest.raises(WrongUse, match=r"--prompts 100000: only \d{4} captions are kept from training"):
        held_out_arrangements(100_000, seed=0)


def test_a_picture_is_right_where_all_of_it_is() -> None:
    right = dict.fromkeys(ATTRIBUTES, True)
    shares = arrangement_fidelity([right, {**right, "relation": False}])
    assert shares["relation"] == shares["all that the caption says"] == Share(1, 2)
    assert shares["shape"] == Share(2, 2)


def test_the_model_that_ships_is_small_and_names_no_folder_of_the_machine_that_made_it() -> None:
    files = [path for path in MODEL.rglob("*") if path.is_file()]
    assert 1 < sum(path.stat().st_size for path in files) < MOST
    assert not {path.suffix for path in files} - {".json", ".safetensors", ".md"}
    for path in MODEL.rglob("*.json"):
        assert "_name_or_path" not in path.read_text()


@pytest.mark.slow
def test_the_model_that_ships_draws_captions_that_it_never_saw() -> None:
    scenes = held_out_arrangements(12, seed=5)
    pictures = draw(MODEL, scenes, SHIPPED.steps, SHIPPED.guidance, seed=5, batch=12, device="cpu")
    verdicts = [
        judge_arrangement(read_arrangement_picture(picture), scene)
        for picture, scene in zip(pictures, scenes, strict=True)
    ]
    for attribute in ATTRIBUTES:
        assert np.mean([right[attribute] for right in verdicts]) > 0.7, attribute
