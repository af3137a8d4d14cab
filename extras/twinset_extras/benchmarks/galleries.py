"""Queries of an image with a text that all rank one large gallery: CIRCO and LaSCo."""

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, Field, StrictInt, TypeAdapter

from twinset.evaluation.benchmarks.composed_retrieval import Galleries, Question
from twinset.evaluation.benchmarks.reader import Submission, image_group
from twinset.evaluation.benchmarks.rows import Row, Text, checked, read_rows, read_values
from twinset.shards.media.media_folder import COCO_DIGITS


class Described(BaseModel):
    """A record of CIRCO. Aspects are absent from the first release, targets from the test split."""

    id: StrictInt
    reference_img_id: StrictInt
    relative_caption: Text
    semantic_aspects: tuple[Text, ...] = ()
    gt_img_ids: list[StrictInt] = []


class Targeted(Described):
    """A record of the validation split."""

    gt_img_ids: list[StrictInt]


class Circo(Galleries):
    """Several targets a query among COCO's 123,403 unlabelled images (Baldrati et al., 2023): mean average precision.

    The released evaluation ranks all images, the reference too. Its recall is about the first target alone; here it is
    about any of them.
    """

    name, title = "circo", "CIRCO (2023), validation"
    citation, licence = "https://arxiv.org/abs/2303.15247", "CC BY-NC 4.0"
    counts: ClassVar = {"val": 220}
    metrics = ("map", "semantic-map")
    expects = "annotations/val.json, image_info_unlabeled2017.json, and the images of COCO's unlabeled2017 below"
    obtained = "The annotations are in the repository miccunifi/CIRCO, list and images at COCO's site"
    files: ClassVar = {"val": "annotations/val.json"}
    listing = "image_info_unlabeled2017.json"
    listing_folders = ("", "annotations", "COCO2017_unlabeled/annotations")
    form: ClassVar[TypeAdapter[Described]] = TypeAdapter(Targeted)

    def listed(self, path: Path) -> Iterable[str]:
        return (Row("", where, "", image).text("file_name") for where, _, image in read_values(path, "images"))

    def question(self, row: Row) -> Question:
        record = checked(row.fields, self.form, row.where)
        numbers = (record.reference_img_id, *record.gt_img_ids)
        reference, *targets = (f"{number:0{COCO_DIGITS}d}.jpg" for number in numbers)
        group, tags = image_group(reference), record.semantic_aspects
        return Question(record.id, group, reference, record.relative_caption, targets, tags=tags)


class CircoTest(Circo):
    """Queries without targets, whose answers a server measures: ``{QUERY: [NUMBER of 50 images]}``."""

    name, title = "circo-test", "CIRCO (2023), test"
    counts: ClassVar = {"test": 800}
    expects = "annotations/test.json, image_info_unlabeled2017.json, and the images of COCO's unlabeled2017 below"
    files: ClassVar = {"test": "annotations/test.json"}
    form = TypeAdapter(Described)
    submissions: ClassVar = {"test": Submission("test.json", 50, lambda name: int(image_group(name)))}


class Changed(BaseModel):
    """A record of LaSCo. An image is its number and its path."""

    qid: StrictInt
    text: Text = Field(alias="query-text")
    reference: tuple[int, Text] = Field(alias="query-image")
    target: tuple[int, Text] = Field(alias="target-image")


CHANGED = TypeAdapter(Changed)


class Lasco(Galleries):
    """Queries made of questions about COCO's images (Levy et al., 2024): 39,826 images of val2014 are ranked.

    The reference is not ranked, as in CIRR; the paper does not say.
    """

    name = "lasco"
    title = "LaSCo (2024), validation"
    citation = "https://arxiv.org/abs/2303.09429"
    licence = "MIT"
    expects = "lasco_val.json, lasco_val_corpus.json, and the images of COCO val2014 below"
    obtained = "Both are in the folder downloads of the repository levymsn/LaSCo"

    files: ClassVar = {"val": "lasco_val.json"}
    listing = "lasco_val_corpus.json"
    excluding = True

    def listed(self, path: Path) -> Iterable[str]:
        return (_name(row.text("path")) for row in read_rows(path, ""))

    def question(self, row: Row) -> Question:
        record = checked(row.fields, CHANGED, row.where)
        reference, target = _name(record.reference[1]), _name(record.target[1])
        return Question(record.qid, image_group(reference), reference, record.text, [target])


def _name(path: str) -> str:
    return path.rpartition("/")[2]
