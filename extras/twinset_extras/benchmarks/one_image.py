"""One image and captions of which one or more are right: What'sUp, SugarCrepe++, SPEC, VL-CheckList."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import ClassVar

from pydantic import BaseModel, Field, TypeAdapter

from twinset import WrongUse
from twinset.evaluation.benchmarks.reader import Item, Ranked, Reader, all_alike
from twinset.evaluation.benchmarks.rows import REFETCH, TEXTS, WHOLE, Row, Text
from twinset.evaluation.examples import Query
from twinset.shards.media.media_folder import COCO_DIGITS
from twinset_extras.benchmarks.listed import Listed


class WhatsUp(Ranked, Listed):
    """Where one object is relative to another (Kamath et al., 2023): four prepositions in photographs made for it (A on
    and under furniture, B before and behind objects), and two in images of COCO and Visual Genome.

    The first caption is right; what follows the fourth was added later. Images of A and B with the same two objects are
    one group, which the released code's pair and set accuracy are about.
    """

    name, title = "whatsup", "What'sUp (2023)"
    citation, licence = "https://arxiv.org/abs/2310.19785", "MIT"
    metrics = ("sets",)
    counts: ClassVar = {"a": 412, "b": 408, "coco-one": 2247, "coco-two": 440, "vg-one": 1160, "vg-two": 291}
    expects = (
        "controlled_images_dataset.json, controlled_clevr_dataset.json, coco_qa_one_obj.json, coco_qa_two_obj.json, "
        "vg_qa_one_obj.json or vg_qa_two_obj.json, and the images below"
    )
    obtained = "The repository amitakamath/whatsup_vlms links them"

    files: ClassVar = {
        "a": "controlled_images_dataset.json",
        "b": "controlled_clevr_dataset.json",
        "coco-one": "coco_qa_one_obj.json",
        "coco-two": "coco_qa_two_obj.json",
        "vg-one": "vg_qa_one_obj.json",
        "vg-two": "vg_qa_two_obj.json",
    }
    header = ("image_path", "right", "wrong")
    image_columns = ("image_path",)
    _PREPOSITIONS = frozenset(["on", "under", "left", "right", "front", "behind", "above", "below", "top", "bottom"])

    def image_name(self, row: Row, column: str) -> str:
        """Its path ends in the name; of COCO and Visual Genome only the number is told."""
        name = PurePosixPath(super().image_name(row, column)).name
        return f"{name.zfill(COCO_DIGITS) if 'coco' in row.subset else name}.jpg" if name.isdecimal() else name

    def captions(self, row: Row) -> Sequence[str]:
        if row.subset in ("a", "b"):
            return row.value("caption_options", TEXTS)[:4]
        return row.text("right"), row.text("wrong")

    def category(self, row: Row) -> str:
        """The preposition of the right caption."""
        words = self.captions(row)[0].lower().rstrip(".").split()
        return next((word for word in reversed(words) if word in self._PREPOSITIONS), "")

    def group(self, row: Row) -> str:
        """Of ``mug_left_of_knife.jpeg`` both objects."""
        parts = PurePosixPath(self.image_name(row, self.image_columns[0])).stem.split("_")
        return f"{parts[0]} {parts[-1]}" if row.subset in ("a", "b") else super().group(row)


class SugarCrepePlus(Ranked):
    """Two captions that say the same and one that does not (Dumpala et al., 2024).

    Its image-to-text score asks for both above the wrong one, and is called all_targets here.
    """

    name, title = "sugarcrepe++", "SugarCrepe++ (2024)"
    citation, licence = "https://arxiv.org/abs/2406.11171", "CC BY 4.0"
    counts: ClassVar = {"replace_obj": 1652, "replace_att": 788, "replace_rel": 1406, "swap_obj": 245, "swap_att": 666}
    metrics: Sequence[str] = ("all-targets",)
    expects = "replace_obj.json … swap_att.json, with caption2, and the images of COCO val2017 in any folder below"
    obtained = (
        "The annotations are in the folder data of Aman-J/SugarCrepe_pp at Hugging Face, the images at COCO's site"
    )

    files: ClassVar = {kind: f"{kind}.json" for kind in counts}
    image_columns, caption_columns = ("filename",), ("caption", "caption2", "negative_caption")

    def right(self, row: Row) -> frozenset[int]:
        return frozenset({0, 1})


class Spec(Reader):
    """Size, position, existence and count in generated images, both ways (Peng et al., 2024).

    recall@1 is the accuracy; subsets end in ``-i2t`` and ``-t2i``.
    """

    name, title = "spec", "SPEC (2024)"
    citation, licence = "https://arxiv.org/abs/2312.00081", "Apache-2.0"
    expects = "folders such as absolute_size, each with image2text.json, text2image.json and its images"
    obtained = "They are data.zip of wjpoom/SPEC at Hugging Face, unpacked"

    apart = True
    _FILES: ClassVar = {"-i2t": "image2text.json", "-t2i": "text2image.json"}

    @cached_property
    def files(self) -> Mapping[str, str]:  # type: ignore[override]
        return {
            f"{path.parent.name.replace('_', '-')}{way}": path.relative_to(self.data).as_posix()
            for path in sorted({*self.data.glob("*/*2*.json"), *self.data.glob("data/*/*2*.json")})
            for way, name in self._FILES.items()
            if path.name == name
        }

    def example(self, row: Row) -> Item:
        folder = PurePosixPath(self.files[row.subset]).parent
        images = row.subset.endswith("i2t")
        keys, label = row.value("keys", TEXTS), row.value("label", WHOLE)
        names = [f"{folder}/{name}" for name in ([row.text("query")] if images else keys)]
        pictures = [self.named(row, name) for name in names]
        if not 0 <= label < len(keys):
            raise WrongUse(f"{row.where}: label {label} is not one of its {len(keys)} keys; {REFETCH}")
        return Query(
            key=f"{row.subset}/{row.number}",
            subset=row.subset,
            group=names[0] if images else f"{folder}/{row.text('query')}",
            image=pictures[0] if images else None,
            text=None if images else row.text("query"),
            gallery=tuple(keys) if images else tuple(pictures),
            targets=all_alike(keys, [label]),
        )


class Phrases(BaseModel):
    """One that fits an image, and one that does not."""

    POS: list[Text] = Field(min_length=1, max_length=1)
    NEG: list[Text] = Field(min_length=1, max_length=1)


PHRASES = TypeAdapter(Phrases)


class VlChecklist(Listed):
    """A phrase of an image with one word replaced (Zhao et al., 2022); every JSON file is a subset."""

    name, title = "vl-checklist", "VL-CheckList (2022)"
    citation = "https://arxiv.org/abs/2207.00221"
    counts: ClassVar = {
        **{"attribute-vaw-action": 3039, "attribute-vaw-material": 11835, "attribute-vaw-size": 15321},
        **{"attribute-vaw-state": 4939, "attribute-vg-action": 1892, "attribute-vg-color": 11569},
        **{"attribute-vg-material": 2470, "attribute-vg-size": 2695, "attribute-vg-state": 941},
    }
    expects = (
        "folders Attribute, Object or Relation with JSON files, such as Attribute/vaw/size.json, and the images below"
    )
    obtained = "The annotations are in the folder data of the repository om-ai-lab/VL-CheckList"

    header = ("image", "said")

    @cached_property
    def files(self) -> Mapping[str, str]:  # type: ignore[override]
        return {
            "-".join(path.relative_to(root).parts).partition(".")[0].lower(): path.relative_to(self.data).as_posix()
            for root in (self.data, self.data / "data")
            for kind in ("Attribute", "Object", "Relation")
            for path in sorted((root / kind).rglob("*.json*"))
        }

    def captions(self, row: Row) -> Sequence[str]:
        phrases = row.value("said", PHRASES)
        return phrases.POS + phrases.NEG
