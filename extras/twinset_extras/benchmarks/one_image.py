"""One image and captions of which one or more are right: What'sUp, ARO, SugarCrepe++, SPEC, VL-CheckList."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import ClassVar

from twinset import WrongUse
from twinset.evaluation.benchmarks.json_items import list_of, object_of
from twinset.evaluation.benchmarks.reader import Item, all_alike
from twinset.evaluation.benchmarks.records import REFETCH, OneImage, Record, Records, present
from twinset.evaluation.examples import Picture, Query, TextPair

COCO_DIGITS = 12  # of the number in the name of an image


class WhatsUp(OneImage):
    """Where one object is relative to another (Kamath et al., 2023): four prepositions in photographs made for it (A on
    and under furniture, B before and behind objects), and two in images of COCO and Visual Genome.

    The first caption is right; what follows the fourth was added later. Images of A and B with the same two objects are
    one group, which the released code's pair and set accuracy are about.
    """

    name = "whatsup"
    title = "What'sUp (2023)"
    citation = "https://arxiv.org/abs/2310.19785"
    licence = "MIT"
    metrics = ("sets",)
    counts: ClassVar = {"a": 412, "b": 408, "coco-one": 2247, "coco-two": 440, "vg-one": 1160, "vg-two": 291}
    expects = (
        "controlled_images_dataset.json, controlled_clevr_dataset.json, coco_qa_one_obj.json, coco_qa_two_obj.json, "
        "vg_qa_one_obj.json or vg_qa_two_obj.json, and the images below"
    )
    obtained = "The repository amitakamath/whatsup_vlms links them"

    every: ClassVar = {
        "a": "controlled_images_dataset.json",
        "b": "controlled_clevr_dataset.json",
        "coco-one": "coco_qa_one_obj.json",
        "coco-two": "coco_qa_two_obj.json",
        "vg-one": "vg_qa_one_obj.json",
        "vg-two": "vg_qa_two_obj.json",
    }
    positions = ("image_path", "right", "wrong")
    image_of = "image_path"
    ranked = True
    _PREPOSITIONS = frozenset(["on", "under", "left", "right", "front", "behind", "above", "below", "top", "bottom"])

    def image_name(self, record: Record, field: str) -> str:
        """Its path ends in the name; of COCO and Visual Genome only the number is told."""
        name = PurePosixPath(super().image_name(record, field)).name
        return f"{name.zfill(COCO_DIGITS) if 'coco' in record.subset else name}.jpg" if name.isdecimal() else name

    def options(self, record: Record) -> Sequence[str]:
        if record.subset in ("a", "b"):
            return record.texts("caption_options")[:4]
        return record.text("right"), record.text("wrong")

    def category(self, record: Record) -> str:
        """The preposition of the right caption."""
        said = self.options(record)[0].lower().rstrip(".").split()
        return next((word for word in reversed(said) if word in self._PREPOSITIONS), "")

    def group(self, record: Record) -> str:
        """Of ``mug_left_of_knife.jpeg`` both objects."""
        parts = PurePosixPath(self.image_name(record, self.image_of)).stem.split("_")
        return f"{parts[0]} {parts[-1]}" if record.subset in ("a", "b") else super().group(record)


class Aro(OneImage):
    """Attributes or the two things of a relation exchanged (Yuksekgonul et al., 2023), in a box of an image."""

    name = "aro"
    title = "ARO (2023), attribution and relation"
    citation = "https://arxiv.org/abs/2210.01936"
    licence = "MIT"
    expects = "visual_genome_attribution.json or visual_genome_relation.json, and the folder images of both"
    obtained = "The repository mertyg/vision-language-models-are-bows links them"

    apart = True
    every: ClassVar = {"attribution": "visual_genome_attribution.json", "relation": "visual_genome_relation.json"}
    image_of = "image_path"

    def picture(self, record: Record) -> Picture:
        box = [record.whole(f"bbox_{side}") for side in "xywh"]
        name = self.image_name(record, self.image_of)
        found = self.images.find_crop(name, (box[0], box[1], box[2], box[3]), record.where, "box")
        return present(found, name)

    def options(self, record: Record) -> Sequence[str]:
        return record.text("true_caption"), record.text("false_caption")

    def category(self, record: Record) -> str:
        """The relation, or both attributes."""
        if record.subset == "relation":
            return record.text("relation_name")
        return "_".join(record.texts("attributes"))


class AroOrder(OneImage):
    """A caption and four shuffles of its words (Yuksekgonul et al., 2023), the caption first.

    The released code shuffles while it runs; save what its ``COCO_Order`` or ``Flickr30k_Order`` has in ``test_cases``.
    """

    name = "aro-order"
    title = "ARO (2023), order"
    citation = Aro.citation
    licence = Aro.licence
    expects = "coco_order.json or flickr30k_order.json: a list of {image, caption_options}, and the images below"
    obtained = "Save test_cases of COCO_Order and Flickr30k_Order (mertyg/vision-language-models-are-bows) as JSON"

    apart = True
    every: ClassVar = {"coco": "coco_order.json", "flickr30k": "flickr30k_order.json"}
    ranked = True

    def options(self, record: Record) -> Sequence[str]:
        return record.texts("caption_options")


class SugarCrepePlus(OneImage):
    """Two captions that say the same and one that does not (Dumpala et al., 2024).

    Its image-to-text score asks for both above the wrong one, and is called all_targets here.
    """

    name = "sugarcrepe++"
    title = "SugarCrepe++ (2024)"
    citation = "https://arxiv.org/abs/2406.11171"
    licence = "CC BY 4.0"
    counts: ClassVar = {"replace_obj": 1652, "replace_att": 788, "replace_rel": 1406, "swap_obj": 245, "swap_att": 666}
    metrics: Sequence[str] = ("all-targets",)
    expects = "replace_obj.json … swap_att.json, with caption2, and the images of COCO val2017 in any folder below"
    obtained = (
        "The annotations are in the folder data of Aman-J/SugarCrepe_pp at Hugging Face, the images at COCO's site"
    )

    every: ClassVar = {kind: f"{kind}.json" for kind in counts}
    image_of = "filename"
    ranked = True

    def options(self, record: Record) -> Sequence[str]:
        return [record.text(field) for field in ("caption", "caption2", "negative_caption")]

    def right(self, record: Record) -> frozenset[int]:
        return frozenset({0, 1})


class SugarCrepePlusText(SugarCrepePlus):
    """The same captions without the image: the two that say the same are more alike than either is like the wrong one.

    recall@1 is the text-only score, of a text encoder alone.
    """

    name = "sugarcrepe++-text"
    title = "SugarCrepe++ (2024), text only"
    metrics = ()
    expects = "replace_obj.json … swap_att.json, with caption2"
    obtained = "They are in the folder data of Aman-J/SugarCrepe_pp at Hugging Face"

    def example(self, record: Record) -> Item:
        first, second, wrong = self.options(record)
        return Query(
            key=f"{record.subset}/{record.number}",
            subset=record.subset,
            group=self.group(record),
            category=self.category(record),
            image=None,
            text=None,
            gallery=(TextPair(first, second), TextPair(first, wrong), TextPair(second, wrong)),
            targets=frozenset({0}),
        )


class Spec(Records):
    """Size, position, existence and count in generated images, both ways (Peng et al., 2024).

    recall@1 is the accuracy; subsets end in ``-i2t`` and ``-t2i``.
    """

    name = "spec"
    title = "SPEC (2024)"
    citation = "https://arxiv.org/abs/2312.00081"
    licence = "Apache-2.0"
    expects = "folders such as absolute_size, each with image2text.json, text2image.json and its images"
    obtained = "They are data.zip of wjpoom/SPEC at Hugging Face, unpacked"

    apart = True
    _FILES: ClassVar = {"-i2t": "image2text.json", "-t2i": "text2image.json"}

    def layout(self) -> Mapping[str, str]:
        return self._layout

    @cached_property
    def _layout(self) -> Mapping[str, str]:
        return {
            f"{path.parent.name.replace('_', '-')}{way}": path.relative_to(self.data).as_posix()
            for path in sorted({*self.data.glob("*/*2*.json"), *self.data.glob("data/*/*2*.json")})
            for way, name in self._FILES.items()
            if path.name == name
        }

    def example(self, record: Record) -> Item:
        folder = PurePosixPath(self.layout()[record.subset]).parent
        images = record.subset.endswith("i2t")
        names = [f"{folder}/{one}" for one in ([record.text("query")] if images else record.texts("keys"))]
        pictures = [present(self.images.find(name, record.where), name) for name in names]
        keys, label = list_of(record.fields, "keys", record.where), record.whole("label")
        if not 0 <= label < len(keys):
            raise WrongUse(f"{record.where}: label {label} is not one of its {len(keys)} keys; {REFETCH}")
        keys = record.texts("keys")
        return Query(
            key=f"{record.subset}/{record.number}",
            subset=record.subset,
            group=names[0] if images else f"{folder}/{record.text('query')}",
            image=pictures[0] if images else None,
            text=None if images else record.text("query"),
            gallery=tuple(keys) if images else tuple(pictures),
            targets=all_alike(keys, [label]),
        )


class VlChecklist(OneImage):
    """A phrase of an image with one word replaced (Zhao et al., 2022); every JSON file is a subset."""

    name = "vl-checklist"
    title = "VL-CheckList (2022)"
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

    positions = ("image", "said")

    def layout(self) -> Mapping[str, str]:
        return self._layout

    @cached_property
    def _layout(self) -> Mapping[str, str]:
        return {
            "-".join(path.relative_to(root).parts).partition(".")[0].lower(): path.relative_to(self.data).as_posix()
            for root in (self.data, self.data / "data")
            for kind in ("Attribute", "Object", "Relation")
            for path in sorted((root / kind).rglob("*.json*"))
        }

    def options(self, record: Record) -> Sequence[str]:
        said = object_of(record.fields["said"], record.where)
        pairs = [list_of(said, side, record.where) for side in ("POS", "NEG")]
        if any(len(one) != 1 or not isinstance(one[0], str) for one in pairs):
            raise WrongUse(f"{record.where}: not one phrase that fits and one that does not; {REFETCH}")
        return [one[0] for one in pairs]
