"""Export of triplets to the files that GeneCIS's released training reads (facebookresearch/genecis, `train_cc3m.py`).

    DIR/cc_tsg.pt       `cc3m_tsg_path`: the relations, ``[{image_id, captions, entities, relations}]``, an entry a
                        caption; each relation is ``{subject, relation, object}``
    DIR/triplets.pt     `cc3m_deterministic_root_path`: ``[{ref_img_idx, target_img_idx, text_distractor_img_idx}]``,
                        numbers of relations, counted over all entries in order
    DIR/training/…      the images by their sha256; `cc3m_root` is DIR

Only lists, dicts, text and whole numbers are saved, so that ``torch.load`` reads them with ``weights_only`` too.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from twinset.manifests.errors import BuildFailed, WrongUse
from twinset.shards.export.formats import Format
from twinset.shards.kinds.kind import Stored
from twinset.shards.kinds.triplet import TRIPLET, TripletRecord
from twinset.shards.read import finished, of_kind, read_samples
from twinset.shards.storage.store import Store

INDICES = ("ref_img_idx", "target_img_idx", "text_distractor_img_idx")  # in the order of `PARTS`
WORDS = ("subject", "predicate", "object")
LEAST_IMAGES, LEAST_OBJECTS = 5, 2  # of some subject, or the released data set cannot be opened

#: Image, caption and the relation that is said.
Said = tuple[str, str, tuple[str, str, str]]


def export_training(store: Store, subsets: Sequence[str], folder: Path) -> int:
    """Write the triplets of subsets into ``folder``, several splits into a folder each; returns how many there are.

    Raises:
        WrongUse: torch, which writes these files, is not installed; a subset is an index without images; or the
            released data set could not open the files.
        BuildFailed: a triplet lacks a relation.
    """
    try:
        import torch
    except ImportError as error:
        raise WrongUse("--format genecis-training needs torch, which writes its files: pip install torch") from error
    splits = defaultdict[str, _Split](_Split)
    for subset in subsets:
        if any(kept and not tar_size for _, kept, tar_size in finished(store, subset).columns("kept", "tar_size")):
            raise WrongUse(
                f"{subset} is an index without images, and --format genecis-training takes triplets with images; build "
                f"it with subsets.{subset}.source.images"
            )
        for sample in of_kind(read_samples(store, subset), TRIPLET, "--format genecis-training"):
            _add(splits[sample.json.split], sample, folder / sample.json.split)
    for name, split in splits.items():
        split.refuse_too_few(name)
        relations, triplets = split.tables()
        torch.save(relations, folder / name / "cc_tsg.pt")
        torch.save(triplets, folder / name / "triplets.pt")
    if len(splits) == 1:
        (name,) = splits
        only = (folder / name).rename(folder / f".{name}")  # a split can be called as a folder in it
        for path in list(only.iterdir()):
            path.rename(folder / path.name)
        only.rmdir()
    return sum(len(split.triplets) for split in splits.values())


@dataclass(slots=True)
class _Split:
    """relations: by image and caption, in the order that triplets have them. triplets: of three or two relations."""

    relations: dict[tuple[str, str], dict[tuple[str, str, str], None]] = field(default_factory=dict)
    triplets: list[list[Said]] = field(default_factory=list)

    def tables(self) -> tuple[list[dict[str, Any]], list[dict[str, int]]]:
        """The entries of the relations, and triplets as numbers of relations."""
        entries, numbers = list[dict[str, Any]](), dict[Said, int]()
        for (image, caption), said in self.relations.items():
            relations = [{"subject": words[0], "relation": words[1], "object": words[2]} for words in said]
            entities = list(dict.fromkeys(word for words in said for word in (words[0], words[2])))
            entries.append({"image_id": image, "captions": [caption], "entities": entities, "relations": relations})
            for words in said:
                numbers[image, caption, words] = len(numbers)
        return entries, [
            {name: numbers[one] for name, one in zip(INDICES, parts, strict=False)} for parts in self.triplets
        ]

    def refuse_too_few(self, split: str) -> None:
        """Raise `WrongUse` where no subject has the images and objects that the released data set wants of one."""
        images, objects = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
        for (image, _), said in self.relations.items():
            for subject, _, object_ in said:
                images[subject].add(image)
                objects[subject].add(object_)
        if not any(len(images[one]) >= LEAST_IMAGES and len(objects[one]) >= LEAST_OBJECTS for one in images):
            raise WrongUse(
                f"--format genecis-training: no subject of the split {split} is in {LEAST_IMAGES} images with "
                f"{LEAST_OBJECTS} objects, and GeneCIS's data set opens no such file; build more triplets (count)"
            )


def _add(split: _Split, sample: Stored[TripletRecord], folder: Path) -> None:
    parts = list[Said]()
    for part, content in sample.images.items():
        told = sample.json.provenance.get(part)
        if not isinstance(told, dict) or not all(isinstance(told.get(word), str) for word in WORDS):
            raise BuildFailed(f"{sample.key}: its JSON has no relation of the {part}; build this shard again")
        path = folder / "training" / f"{sample.json.images[part].sha256}.{sample.extension}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_bytes(content)
        subject, predicate, object_ = (str(told[word]) for word in WORDS)
        said = path.name, sample.json.captions[part], (subject, predicate, object_)
        split.relations.setdefault(said[:2], {})[said[2]] = None
        parts.append(said)
    split.triplets.append(parts)


GENECIS_TRAINING_FORMAT = Format(TRIPLET, export_training)
