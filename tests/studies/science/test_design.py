from pathlib import Path

import pytest
import yaml

from studies.science.design import DESIGN, read_design
from tests.studies.science.made_scores import small_design
from twinset.contracts.errors import WrongUse
from twinset.training.clip.settings import ClipSettings
from twinset.training.detectors.settings import DetectorSettings
from twinset.training.runs.settings import checked


def test_every_arm_encodes_as_much() -> None:
    design = read_design()
    encoded = {name: sum(design.encoded(name)) for name, arm in design.arms.items() if arm.kind == "clip"}
    assert len({*encoded.values()}) == 1 and encoded["ft"] > 0
    images, texts = design.encoded("negative-texts")
    assert texts == 2 * images
    assert design.encoded("none") == (0, 0)


@pytest.mark.parametrize("full", [False, True])
def test_every_arm_has_settings_that_training_takes(full: bool) -> None:
    design = read_design(full)
    assert len(design.seeds) >= 4
    for name, arm in design.arms.items():
        if arm.kind == "clip":
            settings = checked(ClipSettings, {**design.clip_settings(name), "model": "ViT-B-32"})
            assert settings.twins == "first"
    assert DetectorSettings.model_validate({**design.detectors, "seed": 1}).data == ("arms",)
    # The control of weight 0 is fine-tuning with a regulariser that must not matter.
    zero, ft = design.clip_settings("weight-0"), design.clip_settings("ft")
    assert {key for key in zero if zero[key] != ft.get(key)} == {"regulariser", "regulariser_weight"}


def test_the_digest_is_that_of_what_is_decided() -> None:
    design = small_design()
    assert design.digest == small_design().digest
    assert design.digest != small_design(least=3).digest
    assert read_design(seeds=3).seeds == (21, 22, 23) and read_design(seeds=7).seeds == (*range(21, 28),)
    assert read_design(seeds=3).digest != read_design().digest != read_design(full=True).digest


def test_a_design_that_does_not_hold_together_is_refused(tmp_path: Path) -> None:
    found = yaml.safe_load(DESIGN.read_text("utf-8"))
    path = tmp_path / "design.yaml"
    for key, value, message in (
        ("calibration_seeds", [0, 21], "one of the seeds"),
        ("calibration_seeds", [0], "calibration_seeds"),
        ("power", 100, "power"),
        ("claims", {"X": {**found["claims"]["A3"], "published": {"eqsim": 1}}}, "does not compare: eqsim"),
        ("least", "much", "least"),
        ("surprise", 1, "surprise"),
        ("primary", {"pairs": "nowhere", "queries": "galleries"}, "no test set nowhere"),
        ("primary", {"pairs": "calibration", "queries": "galleries"}, "for tuning"),
        ("claims", {"X": {**found["claims"]["A3"], "than": ["nobody"]}}, "nobody"),
        ("claims", {"X": {**found["claims"]["A3"], "than": ["image-only"], "published": {}}}, "different test sets"),
    ):
        path.write_text(yaml.safe_dump({**found, key: value}), "utf-8")
        with pytest.raises(WrongUse, match=message):
            read_design(path=path)
