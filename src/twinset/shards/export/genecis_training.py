"""Export to the files that GeneCIS's released training reads (facebookresearch/genecis, `train/train_cc3m.py`).

    DIR/cc_tsg.pt       `cc3m_tsg_path`: the relations, ``[{image_id, captions, entities, relations}]``, an entry a
                        caption; each relation is ``{subject, relation, object}``
    DIR/triplets.pt     `cc3m_deterministic_root_path`: numbers of relations, counted over all entries in order,
                        ``[{ref_img_idx, target_img_idx, text_distractor_img_idx}]``
    DIR/training/…      the images by their sha256; `cc3m_root` is DIR

Only lists, dicts, text and whole numbers are saved, so that ``torch.load`` reads them with ``weights_only`` too.
"""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.triplet import TRIPLET, TripletRecord
from twinset.shards.export.captioned import write_image
from twinset.shards.export.formats import Format, Shard, lift_only_folder

INDICES = ("ref_img_idx", "target_img_idx", "text_distractor_img_idx")  # in the order of `PARTS`
WORDS = ("subject", "predicate", "object")
LEAST_IMAGES, LEAST_OBJECTS = 5, 2  # of some subject, or the released data set cannot be opened

#: Image, caption and the relation that is said.
Said = tuple[str, str, tuple[str, str, str]]


def write_training(shards: Iterator[Shard], folder: Path) -> None:
    """Write the triplets of subsets, several splits into a folder each.

    Raises:
        WrongUse: torch, which writes these files, is not installed; or the released data set could not open them.
        BuildFailed: a triplet lacks a relation.
    """
    try:
        import torch
    except ImportError as error:
        raise WrongUse("--format genecis-training needs torch, which writes its files: pip install torch") from error
    splits = defaultdict[str, list[list[Said]]](list)
    for shard in shards:
        splits[shard.split] += [_relations(one, folder / shard.split) for one in shard.samples]
    for name, triplets in splits.items():
        entries, numbers = _tables(name, triplets)
        places = [{index: numbers[said] for index, said in zip(INDICES, one, strict=False)} for one in triplets]
        torch.save(entries, folder / name / "cc_tsg.pt")
        torch.save(places, folder / name / "triplets.pt")
    lift_only_folder(folder)


def _relations(sample: Stored[TripletRecord], folder: Path) -> list[Said]:
    """The relations of a triplet's parts, two or three, once its images are written."""
    parts = list[Said]()
    for part, image in sample.images.items():
        told = sample.json.provenance.get(part)
        if not isinstance(told, dict) or not all(isinstance(told.get(word), str) for word in WORDS):
            raise BuildFailed(f"{sample.key}: its JSON has no relation of the {part}; build this shard again")
        path = write_image(image, folder, sample.extension, "training").removeprefix("training/")
        subject, predicate, object_ = (str(told[word]) for word in WORDS)
        parts.append((path, sample.json.captions[part], (subject, predicate, object_)))
    return parts


def _tables(split: str, triplets: list[list[Said]]) -> tuple[list[dict[str, Any]], dict[Said, int]]:
    """The entries of all relations, and the number of each."""
    relations = defaultdict[tuple[str, str], dict[tuple[str, str, str], None]](dict)
    images, objects = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for image, caption, words in (said for parts in triplets for said in parts):
        relations[image, caption][words] = None
        images[words[0]].add(image)
        objects[words[0]].add(words[2])
    if not any(len(images[one]) >= LEAST_IMAGES and len(objects[one]) >= LEAST_OBJECTS for one in images):
        raise WrongUse(
            f"--format genecis-training: no subject of the split {split} is in {LEAST_IMAGES} images with "
            f"{LEAST_OBJECTS} objects, and GeneCIS's data set opens no such file; build more triplets (count)"
        )
    entries, numbers = list[dict[str, Any]](), dict[Said, int]()
    for (image, caption), said in relations.items():
        named = [{"subject": words[0], "relation": words[1], "object": words[2]} for words in said]
        entities = list(dict.fromkeys(word for words in said for word in (words[0], words[2])))
        entries.append({"image_id": image, "captions": [caption], "entities": entities, "relations": named})
        for words in said:
            numbers[image, caption, words] = len(numbers)
    return entries, numbers


GENECIS_TRAINING_FORMAT = Format(TRIPLET, write_training)
