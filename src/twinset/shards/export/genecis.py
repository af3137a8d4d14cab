"""Export to the files that GeneCIS's released evaluation reads (facebookresearch/genecis, `eval/evaluate.py`).

    DIR/focus_attribute.json        `genecis_root` is DIR, --dataset is focus_attribute, change_attribute,
    DIR/focus_object.json …         focus_object or change_object

Each is a list of ``{condition, gallery, reference, target}``, the gallery without the target, with the licence, credit
and source URL of the sample, which the evaluation does not read. Images are named, not written: the evaluation reads
them from its own folders of Visual Genome (``{image_id, instance_bbox}``, which it cuts out itself)
and of COCO's val2017 (``{val_image_id}``, a number).
"""

import itertools
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.template import TEMPLATE, TemplateRecord
from twinset.contracts.kinds.triplet import TRIPLET, TripletRecord
from twinset.shards.export.formats import Format
from twinset.shards.read import of_kind, pictured_tars, read_samples, read_tar
from twinset.shards.storage.store import Store
from twinset.shards.storage.whole_file import JsonArray, as_json

P = TypeVar("P")

TASKS = ("focus-attribute", "change-attribute", "focus-object", "change-object")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="allow", strict=True)


class _Crop(_Strict):
    image_id: int | str
    instance_bbox: tuple[float, float, float, float]


class _Scene(_Strict):
    val_image_id: int


class _Entry(_Strict, Generic[P]):
    condition: str
    reference: P
    target: P
    gallery: list[P]


def export_genecis(store: Store, subsets: Sequence[str], folder: Path) -> int:
    """Write a file a task into ``folder``; returns the number of templates.

    Raises `WrongUse` when two subsets are of one task, or one subset is of several.
    """
    count, of_task = 0, dict[str, str]()
    for subset in subsets:
        samples = of_kind(read_samples(store, subset), TEMPLATE, "--format genecis")
        first = next(samples, None)
        if first is None:
            continue
        task = _task(first, subset, of_task)
        path = folder / f"{task.replace('-', '_')}.json"
        with JsonArray(path) as array:
            for sample in itertools.chain([first], samples):
                if sample.json.task != task:
                    raise WrongUse(f"{sample.key} is of the task {sample.json.task}, and others of {subset} of {task}")
                array.append(_entry(sample))
        count += array.length
    return count


def _task(sample: Stored[TemplateRecord], subset: str, of_task: dict[str, str]) -> str:
    """The task of a subset's templates, when no subset before it has that; task -> subset is noted."""
    task = sample.json.task
    if task not in TASKS:
        raise BuildFailed(f"{sample.key}: task {task!r} is none of {', '.join(TASKS)}; build this shard again")
    if task in of_task:
        raise WrongUse(
            f"{of_task[task]} and {subset} are both of the task {task}, and GeneCIS has one file a task; export them "
            "one by one with --only"
        )
    of_task[task] = subset
    return task


def _entry(sample: Stored[TemplateRecord]) -> dict[str, Any]:
    """A sample's entry, held against what the released loaders of its task take out of it."""
    entry = {**sample.json.entry, **sample.json.terms.columns}
    model = _Entry[_Crop] if sample.json.task.endswith("attribute") else _Entry[_Scene]
    try:
        model.model_validate_json(as_json(entry))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise BuildFailed(f"{sample.key}: entry.{where} {first['msg']}; build this shard again") from error
    return entry


GENECIS_FORMAT = Format(TEMPLATE, export_genecis)


INDICES = ("ref_img_idx", "target_img_idx", "text_distractor_img_idx")  # in the order of `PARTS`
WORDS = ("subject", "predicate", "object")
USE = "--format genecis-training"
LEAST_IMAGES, LEAST_OBJECTS = 5, 2  # of some subject, or the released data set cannot be opened

#: Image, caption and the relation that is said.
Said = tuple[str, str, tuple[str, str, str]]


def export_training(store: Store, subsets: Sequence[str], folder: Path) -> int:
    """Write the triplets of subsets into ``folder``, several splits into a folder each; returns how many there are.

    The files are those that GeneCIS's released training reads (`train_cc3m.py`):

        DIR/cc_tsg.pt       `cc3m_tsg_path`: the relations, ``[{image_id, captions, entities, relations}]``, an entry a
                            caption; each relation is ``{subject, relation, object}``
        DIR/triplets.pt     `cc3m_deterministic_root_path`: numbers of relations, counted over all entries in order,
                            ``[{ref_img_idx, target_img_idx, text_distractor_img_idx}]``
        DIR/training/…      the images by their sha256; `cc3m_root` is DIR

    Only lists, dicts, text and whole numbers are saved, so that ``torch.load`` reads them with ``weights_only`` too.

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
        for tar, name, _ in list(pictured_tars(store, subset, USE)):
            for sample in of_kind(read_tar(store, tar), TRIPLET, USE):
                _add(splits[name], sample, folder / name)
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
