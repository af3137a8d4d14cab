import json
from pathlib import Path

import numpy as np
from PIL import Image

from studies.science.design import DESIGN
from studies.science.findings import best_arm, find
from studies.science.runs import Study
from studies.science.ship import LARGEST, card, ship
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import DualEncoder, Running
from twinset_demo.models import SMALL_CLIP


def test_the_best_arm_ships_in_half_precision_and_scores_the_same(study: Study, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    from twinset.models.encoders.open_clip_files import find_architecture
    from twinset.models.encoders.open_clip_models import random_network

    run = best_arm(find(study))
    for seed in study.design.seeds:  # weights of the best arm, which made studies have not
        clip = study.folder(next(run for run in study.after_base() if run.arm == "negative-images")).parent.parent
        folder = clip / f"seed-{seed}" / "negative-images" / "clip"
        folder.mkdir(parents=True)
        config = DESIGN.with_name("small_clip.json")
        network, _ = random_network(find_architecture(str(config)), seed)
        (folder / "open_clip_config.json").write_bytes(config.read_bytes())
        save_file(network.state_dict(), folder / "last.safetensors")
    assert run.arm == "negative-images"
    ship(study, run, tmp_path / "small_clip")
    size = sum(path.stat().st_size for path in (tmp_path / "small_clip").iterdir())
    assert size < LARGEST
    card = (tmp_path / "small_clip" / "README.md").read_text()
    assert run.arm in card and str(tmp_path) not in card and "digest of arms" in card
    whole, halved = (
        open_model(f"open_clip:{one}", Running(threads=1)) for one in (study.weights(run), tmp_path / "small_clip")
    )
    assert isinstance(whole, DualEncoder) and isinstance(halved, DualEncoder)
    picture = Image.fromarray(np.random.default_rng(0).integers(0, 256, (48, 48, 3), np.uint8))
    for a, b in (
        (whole.encode_images([picture]), halved.encode_images([picture])),
        (whole.encode_texts(["a red ball above a blue box"]), halved.encode_texts(["a red ball above a blue box"])),
    ):
        np.testing.assert_allclose(a, b, atol=5e-3)


def test_the_card_of_a_base_says_that_no_arm_was_trained_on_it(study: Study) -> None:
    text = card(study, study.bases()[0], "sum")
    assert "the base of seed 0" in text and "--gate-only --ship" in text and "| Calibration |" in text
    assert "digest of base" in text and "digest of arms" not in text and str(study.out) not in text


def test_the_model_that_ships_is_opened_by_its_name_and_knows_its_world() -> None:
    model = open_model("small-clip", Running(threads=1))
    assert isinstance(model, DualEncoder) and model.name == "small-clip"
    folder = SMALL_CLIP.folder
    assert sum(path.stat().st_size for path in folder.iterdir()) < LARGEST
    assert json.loads((folder / "open_clip_config.json").read_text())["model_cfg"]["embed_dim"] == 64
    # Twelve scenes of a ball and a box: which of two colours is which thing's.
    from twinset_demo.small_diffusion.relations import Thing
    from twinset_demo.small_scenes import painter
    from twinset_demo.small_scenes.captions import caption
    from twinset_demo.small_scenes.scenes import Scene

    rng, right = np.random.default_rng(0), list[bool]()
    for a, b in (("red", "yellow"), ("green", "blue"), ("purple", "yellow"), ("black", "green"), ("red", "purple")):
        scenes = [Scene(Thing(x, "ball"), "above", Thing(y, "star")) for x, y in ((a, b), (b, a))]
        layout = painter.sample_layout(2, rng)
        images = model.encode_images([Image.fromarray(painter.paint(scene, layout, 48)) for scene in scenes])
        scores = images @ model.encode_texts([caption(scene, "of") for scene in scenes]).T
        right += [scores[0, 0] > scores[0, 1], scores[1, 1] > scores[1, 0]]
    assert sum(right) >= 7
