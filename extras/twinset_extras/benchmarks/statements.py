"""Texts that are true of an image or not: Visual Spatial Reasoning."""

from typing import ClassVar

from twinset import WrongUse
from twinset.evaluation.benchmarks.reader import Item, Reader, image_group
from twinset.evaluation.benchmarks.rows import REFETCH, WHOLE, Row
from twinset.evaluation.examples import Statement


class Vsr(Reader):
    """A spatial relation of two objects in an image of COCO, true or false (Liu et al., 2023), which is the category.

    Subsets are its test splits; concepts of ``zeroshot`` are not in the training split beside it.
    """

    name = "vsr"
    title = "Visual Spatial Reasoning (2023)"
    citation = "https://arxiv.org/abs/2205.00363"
    licence = "Apache-2.0"
    counts: ClassVar = {"random": 2195, "zeroshot": 1222}
    expects = "splits/random/test.jsonl or splits/zeroshot/test.jsonl, and images of COCO train2017 and val2017 below"
    obtained = "Splits are in the folder data of the repository cambridgeltl/visual-spatial-reasoning"

    apart = True  # an example may be of both splits
    files: ClassVar = {split: f"splits/{split}/test.jsonl" for split in ("random", "zeroshot")}

    def example(self, row: Row) -> Item:
        label = row.value("label", WHOLE)
        if label not in (0, 1):
            raise WrongUse(f"{row.where}: the label {label} is neither 0 nor 1; {REFETCH}")
        return Statement(
            key=f"{row.subset}/{row.number}",
            subset=row.subset,
            group=image_group(self.image_name(row, "image")),
            category=row.text("relation"),
            image=self.picture(row, "image"),
            text=row.text("caption"),
            true=label == 1,
        )
