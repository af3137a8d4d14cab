"""Winoground, as it was released."""

from typing import ClassVar

from twinset.evaluation.benchmarks.records import TwoByTwo


class Winoground(TwoByTwo):
    """Captions of the same words in another order (Thrush et al., 2022)."""

    name = "winoground"
    image_folders = ("images", "data/images")
    title = "Winoground (2022)"
    citation = "https://arxiv.org/abs/2204.03162"
    licence = "research only"
    counts: ClassVar = {"test": 400}
    expects = "examples.jsonl and a folder of the images that it names (ex_0_img_0.png …), or Parquet files"
    obtained = "Both are in the data set facebook/winoground of Hugging Face, once its terms are accepted"

    every: ClassVar = {"test": "examples.jsonl"}
    splits: ClassVar = {"test": "test"}
    images_of, captions_of = ("image_0", "image_1"), ("caption_0", "caption_1")
    image_fields, word_fields = images_of, ("id", *captions_of, "collapsed_tag")
    identity, kind = "id", "collapsed_tag"
