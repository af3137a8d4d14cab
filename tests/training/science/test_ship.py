from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from evaluation.scorers.contract import DualEncoder, Running
from evaluation.scorers.kinds import open_model
from training.science.design import DESIGN
from training.science.findings import find
from training.science.runs import Study
from training.science.ship import LARGEST, ship


def test_the_best_arm_ships_in_half_precision_and_scores_the_same(study: Study, tmp_path: Path) -> None:
    from safetensors.torch import save_file

    from evaluation.scorers.open_clip_files import find_architecture
    from evaluation.scorers.open_clip_models import random_network

    found = find(study)
    for seed in study.design.seeds:  # weights of the best arm, which made studies have not
        clip = study.folder(next(run for run in study.after_base() if run.arm == "negative-images")).parent.parent
        folder = clip / f"seed-{seed}" / "negative-images" / "clip"
        folder.mkdir(parents=True)
        config = DESIGN.with_name("small_clip.json")
        network, _ = random_network(find_architecture(str(config)), seed)
        (folder / "open_clip_config.json").write_bytes(config.read_bytes())
        save_file(network.state_dict(), folder / "last.safetensors")
    run = ship(found, tmp_path / "small_clip")
    assert run.arm == "negative-images"
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
