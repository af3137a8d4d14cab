"""The README's command for hard negatives runs as typed."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.docs.test_readme_commands import COMMAND, section
from tests.generators.negative_captions.test_negative_captions import CAPTIONS
from twinset.cli.main import main


def test_the_command_of_the_readme_runs_as_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sng_parser")
    images = [{"id": number, "file_name": f"{number:012d}.jpg"} for number in range(len(CAPTIONS))]
    annotations = [{"id": at, "image_id": at, "caption": caption} for at, caption in enumerate(CAPTIONS)]
    (tmp_path / "captions_train2017.json").write_text(json.dumps({"images": images, "annotations": annotations}))
    (tmp_path / "train2017").mkdir()
    for number, image in enumerate(images):
        pixels = np.full((16, 16, 3), number, np.uint8)
        Image.fromarray(pixels).save(tmp_path / "train2017" / str(image["file_name"]))
    build, look = COMMAND.findall(section("README.md", "Hard negatives"))
    monkeypatch.chdir(tmp_path)
    for typed in (build, look):
        assert main(shlex.split(typed.replace("/data/", f"{tmp_path}/").replace("\\\n", " "))[1:]) == 0
    counts = json.loads((tmp_path / "out/hard/hard-negatives/_meta/sizes.json").read_text())
    assert sum(counts.values()) > len(CAPTIONS) / 4
