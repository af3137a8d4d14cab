"""GeneCIS: which image of a small gallery is meant by a reference and a condition (Vaze et al., 2023)."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from twinset.evaluation.benchmarks.json_items import json_items, list_of, object_of, text_of
from twinset.evaluation.benchmarks.pictures import Images
from twinset.evaluation.benchmarks.reader import MISSING, Item, Reader
from twinset.evaluation.examples import LeftOut, Picture, Query
from twinset.manifests.errors import WrongUse
from twinset.shards.media.media_folder import COCO_DIGITS

TASKS = ("focus-attribute", "change-attribute", "focus-object", "change-object")
FOLDERS = ("", "genecis")
SUFFIX = ".jpg"


class GeneCis(Reader):
    """``TASK.json``: ``[{condition, reference, target, gallery}]``, as released and as exported.

    Attribute tasks show crops of Visual Genome's images (``image_id``, ``instance_bbox``), object tasks whole images of
    COCO's val2017 (``val_image_id``). The target stands first, the gallery follows in the order of the file, as in
    the released loader. A gallery image that is the target again is right too.
    """

    name = "genecis"
    title = "GeneCIS (2023)"
    citation = "https://arxiv.org/abs/2306.07969"
    expects = (
        "focus_attribute.json, change_attribute.json, focus_object.json or change_object.json, and in folders below "
        "the images of Visual Genome (1.jpg …) and COCO val2017 (000000000139.jpg …)"
    )
    obtained = "The templates are in the folder genecis of the repository facebookresearch/genecis"

    def found(self) -> Sequence[str]:
        return [task for task in TASKS if self._file(task) is not None]

    def files(self) -> Sequence[Path]:
        return [path for task in self.subsets if (path := self._file(task)) is not None]

    def items(self, subset: str) -> Iterator[Item]:
        path = self._file(subset)
        assert path is not None
        for number, record in json_items(path):
            where = f"{path} record {number}"
            condition = text_of(record, "condition", where)
            entries = [record.get("reference"), record.get("target"), *list_of(record, "gallery", where)]
            if len(entries) < 3:
                raise WrongUse(f"{where}: its gallery is empty; fetch the file again")
            shown = [_picture(entry, self.images, where) for entry in entries]
            names, pictures = zip(*shown, strict=True)
            if None in pictures:
                yield LeftOut(f"{where}: {names[pictures.index(None)]}", MISSING)
                continue
            gallery = [one for one in pictures[1:] if one is not None]
            yield Query(
                key=f"{subset}/{int(number):05d}",
                subset=subset,
                group=names[0],  # 1,960 templates of Change an Object have 218 references
                category=subset,
                image=pictures[0],
                text=condition,
                gallery=gallery,
                targets=frozenset(at for at, one in enumerate(gallery) if one.where == gallery[0].where),
            )

    def _file(self, task: str) -> Path | None:
        return self.in_folders(f"{task.replace('-', '_')}.json", *FOLDERS)


def _picture(entry: Any, images: Images, where: str) -> tuple[str, Picture | None]:
    """The name of an image's file, and the picture that a template shows of it."""
    fields = object_of(entry, f"{where}, an image of it")
    number = fields.get("val_image_id", fields.get("image_id"))
    if not isinstance(number, int | str) or isinstance(number, bool):
        raise WrongUse(f"{where}: an image has neither val_image_id nor image_id; fetch the file again")
    if "val_image_id" in fields:
        # Both data sets may lie here, and both have an image 139.
        name = f"{str(number).zfill(COCO_DIGITS)}{SUFFIX}"
        return name, images.find(name, where)
    box = fields.get("instance_bbox")
    if not isinstance(box, list) or len(box) != 4 or not all(type(side) in (int, float) for side in box):
        raise WrongUse(f"{where}: instance_bbox is not [x, y, width, height]; fetch the file again")
    x, y, width, height = map(float, box)
    return f"{number}{SUFFIX}", images.find_crop(f"{number}{SUFFIX}", (x, y, width, height), where)
