"""The README's recipe of hard negatives builds as it stands."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.docs.test_readme_commands import section
from tests.generators.exchanged_negatives.test_exchanged_negatives import CAPTIONS
from twinset.cli.main import main


def test_the_recipe_of_the_readme_builds_as_it_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sng_parser")
    images = [{"id": number, "file_name": f"{number:012d}.jpg"} for number in range(len(CAPTIONS))]
    annotations = [{"id": at, "image_id": at, "caption": caption} for at, caption in enumerate(CAPTIONS)]
    (tmp_path / "captions_train2017.json").write_text(json.dumps({"images": images, "annotations": annotations}))
    (tmp_path / "train2017").mkdir()
    for number, image in enumerate(images):
        pixels = np.full((16, 16, 3), number, np.uint8)
        Image.fromarray(pixels).save(tmp_path / "train2017" / str(image["file_name"]))
    (recipe,) = re.findall(r"```yaml\n(.*?)```", section("README.md", "Hard negatives"), re.DOTALL)
    (tmp_path / "hard.yaml").write_text(recipe.replace("/data/", f"{tmp_path}/"))
    monkeypatch.chdir(tmp_path)
    assert main(["build", "hard.yaml", "--out", "out/hard"]) == 0
    counts = json.loads((tmp_path / "out/hard/hard/_meta/sizes.json").read_text())
    assert sum(counts.values()) > len(CAPTIONS)
