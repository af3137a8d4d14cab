"""SugarCrepe: an image, its caption, and a hard negative caption of one of seven kinds (Hsieh et al., 2023)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from evaluation.benchmarks.json_items import json_items, text_of
from evaluation.benchmarks.reader import MISSING, Item, Reader, image_group
from evaluation.examples import LeftOut, Matching

KINDS = ("replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att", "add_obj", "add_att")
FOLDERS = ("", "data")


class SugarCrepe(Reader):
    """``KIND.json``: ``{NUMBER: {filename, caption, negative_caption}}``; images are COCO's val2017."""

    name = "sugarcrepe"
    title = "SugarCrepe (2023)"
    citation = "https://arxiv.org/abs/2306.14610"
    expects = "replace_obj.json … add_att.json, and the images of COCO val2017 in any folder below"
    obtained = (
        "The annotations are in the folder data of the repository RAIVNLab/sugar-crepe, the images at COCO's site"
    )

    def found(self) -> Sequence[str]:
        """As `Reader.found`."""
        return [kind for kind in KINDS if self._file(kind) is not None]

    def files(self) -> Sequence[Path]:
        """As `Reader.files`."""
        return [path for kind in self.subsets if (path := self._file(kind)) is not None]

    def items(self, subset: str) -> Iterator[Item]:
        """As `Reader.items`."""
        path = self._file(subset)
        assert path is not None
        for number, record in json_items(path):
            where = f"{path} record {number!r}"
            name = text_of(record, "filename", where)
            captions = (text_of(record, "caption", where), text_of(record, "negative_caption", where))
            image = self.images.find(name, where)
            if image is None:
                yield LeftOut(f"{where}: {name}", MISSING)
                continue
            yield Matching(
                key=f"{subset}/{number}",
                subset=subset,
                group=image_group(name),
                category=subset,
                images=(image,),
                captions=captions,
            )

    def _file(self, kind: str) -> Path | None:
        return self.in_folders(f"{kind}.json", *FOLDERS)
