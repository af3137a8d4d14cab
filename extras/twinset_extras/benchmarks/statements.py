"""Texts that are true of an image or not: Visual Spatial Reasoning."""

from typing import ClassVar

from twinset import WrongUse
from twinset.evaluation.benchmarks.reader import Item, image_group
from twinset.evaluation.benchmarks.records import REFETCH, Record, Records
from twinset.evaluation.examples import Statement


class Vsr(Records):
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
    every: ClassVar = {split: f"splits/{split}/test.jsonl" for split in ("random", "zeroshot")}

    def example(self, record: Record) -> Item:
        label = record.whole("label")
        if label not in (0, 1):
            raise WrongUse(f"{record.where}: the label {label} is neither 0 nor 1; {REFETCH}")
        return Statement(
            key=f"{record.subset}/{record.number}",
            subset=record.subset,
            group=image_group(self.image_name(record, "image")),
            category=record.text("relation"),
            image=record.picture("image"),
            text=record.text("caption"),
            true=label == 1,
        )
