"""The captions of scenes are read as COCO's are."""

from pathlib import Path

from twinset.generators.captions.sources import CaptionSources
from twinset.generators.captions.tables import Caption
from twinset_demo.miniature.scene_captions import CAPTIONS, write_scenes


def test_captions_are_read_as_coco(tmp_path: Path) -> None:
    write_scenes(tmp_path)
    read = list(CaptionSources([tmp_path / "captions.json"]).read())
    assert [one.caption for one in read if isinstance(one, Caption)] == list(CAPTIONS)
    assert len({one.image_id for one in read if isinstance(one, Caption)}) == len(CAPTIONS)
