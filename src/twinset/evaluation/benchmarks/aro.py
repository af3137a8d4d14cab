"""ARO: what is attributed to what, which way a relation holds, and the order of words (Yuksekgonul et al., 2023)."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np
from PIL import Image

from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks.pictures import REFETCH, as_png
from twinset.evaluation.benchmarks.reader import Pairs, Ranked
from twinset.evaluation.benchmarks.rows import TEXTS, WHOLE, Row
from twinset.evaluation.examples import Picture
from twinset.generators.image_files import ImageFiles, UnusableImage
from twinset.shards.media.decode import MOST_PIXELS


class Aro(Pairs):
    """Attributes or the two things of a relation exchanged (Yuksekgonul et al., 2023), in a box of an image."""

    name, title = "aro", "ARO (2023), attribution and relation"
    citation, licence = "https://arxiv.org/abs/2210.01936", "MIT"
    expects = "visual_genome_attribution.json or visual_genome_relation.json, and the folder images of both"
    obtained = "The repository mertyg/vision-language-models-are-bows links them"
    apart = True
    files: ClassVar = {"attribution": "visual_genome_attribution.json", "relation": "visual_genome_relation.json"}
    image_columns, caption_columns = ("image_path",), ("true_caption", "false_caption")

    def picture(self, row: Row, column: str) -> Picture:
        x, y, width, height = (row.value(f"bbox_{side}", WHOLE) for side in "xywh")
        whole = self.named(row, self.image_name(row, column))
        name = whole.where.removeprefix(f"{self.data}/")
        read = partial(_cut, self.data, name, (x, y, x + width, y + height))
        return Picture(f"{whole.where}#{x},{y},{width},{height}", read)

    def category(self, row: Row) -> str:
        """The relation, or both attributes."""
        return row.text("relation_name") if row.subset == "relation" else "_".join([*row.value("attributes", TEXTS)])


def _cut(root: Path, name: str, box: tuple[int, int, int, int]) -> bytes:
    """What is in a box, black where it leaves the image, as in the released code. box: left, top, right, bottom."""
    frame = ImageFiles(root, upright=False).read([name])[name]
    if isinstance(frame, UnusableImage):
        raise WrongUse(f"{root}: {frame.detail}")
    image, (left, top, right, bottom) = Image.fromarray(frame.pixels), box
    shown = min(right, image.width) > max(left, 0) and min(bottom, image.height) > max(top, 0)
    if not shown or (right - left) * (bottom - top) > MOST_PIXELS:
        raise WrongUse(f"{root}/{name}: its box {box} has no pixel in an image of {image.size}, or too many; {REFETCH}")
    return as_png(np.asarray(image.crop(box)))


class AroOrder(Ranked):
    """A caption and four shuffles of its words (Yuksekgonul et al., 2023), the caption first.

    The released code shuffles while it runs; save what its ``COCO_Order`` or ``Flickr30k_Order`` has in ``test_cases``.
    """

    name, title = "aro-order", "ARO (2023), order"
    citation, licence = Aro.citation, Aro.licence
    expects = "coco_order.json or flickr30k_order.json: a list of {image, caption_options}, and the images below"
    obtained = "Save test_cases of COCO_Order and Flickr30k_Order (mertyg/vision-language-models-are-bows) as JSON"
    apart = True
    files: ClassVar = {"coco": "coco_order.json", "flickr30k": "flickr30k_order.json"}

    def captions(self, row: Row) -> Sequence[str]:
        return row.value("caption_options", TEXTS)
