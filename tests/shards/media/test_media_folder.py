"""Media are found by name, inside their folder, and only where they can be read to an end."""

import os
from pathlib import Path

import pytest

from twinset.shards.media.media_folder import EscapesRoot, MediaFolder


def test_what_can_never_be_read_to_an_end_is_not_found(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.mp4")
    (tmp_path / "device.mp4").symlink_to("/dev/zero")
    (tmp_path / "dangling.mp4").symlink_to("nowhere")
    (tmp_path / "loop.mp4").symlink_to("loop.mp4")
    (tmp_path / "folder.mp4").mkdir()
    media = MediaFolder(tmp_path)
    for name in ("pipe", "device", "dangling", "loop", "folder", "x" * 5000):
        assert media.find(name) is None


def test_nested_videos_are_found_by_name(tmp_path: Path) -> None:
    video = tmp_path / "training" / "101" / "-Abc.mkv"
    video.parent.mkdir(parents=True)
    video.write_bytes(b"x")
    assert MediaFolder(tmp_path).find("-Abc") == video


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a\0b", "a\\b", ""])
def test_names_that_lead_out_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(EscapesRoot):
        MediaFolder(tmp_path).find(name)
