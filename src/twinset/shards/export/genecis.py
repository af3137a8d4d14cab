"""Export to the files that GeneCIS's released evaluation reads (facebookresearch/genecis, `eval/evaluate.py`).

    DIR/focus_attribute.json        `genecis_root` is DIR, --dataset is focus_attribute, change_attribute,
    DIR/focus_object.json …         focus_object or change_object

Each is a list of ``{condition, gallery, reference, target}``, the gallery without the target, with the licence, credit
and source URL of the sample, which the evaluation does not read. Images are named, not written: the evaluation reads
them from its own folders of Visual Genome (``{image_id, instance_bbox}``, which it cuts out itself)
and of COCO's val2017 (``{val_image_id}``, a number).
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.contracts.kinds.kind import Stored
from twinset.contracts.kinds.template import TEMPLATE, TemplateRecord
from twinset.shards.export.captioned import JsonItems
from twinset.shards.export.formats import BySplit, Format, Shard

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


def write_genecis(shards: Iterator[Shard], folder: Path) -> None:
    """Write a file a task; raises `WrongUse` when two subsets are of one task."""
    subset_of = dict[str, str]()
    with BySplit(lambda task: JsonItems(folder / f"{task.replace('-', '_')}.json")) as files:
        for shard in shards:
            for sample in shard.samples:
                if (first := subset_of.setdefault(sample.json.task, shard.subset)) != shard.subset:
                    raise WrongUse(
                        f"{first} and {shard.subset} are both of the task {sample.json.task}, and GeneCIS has one file "
                        "a task; export them one by one with --only"
                    )
                files[sample.json.task].append(_entry(sample))


def _entry(sample: Stored[TemplateRecord]) -> dict[str, Any]:
    """A sample's entry, held against what the released loaders of its task take out of it."""
    task, entry = sample.json.task, {**sample.json.entry, **sample.json.terms._asdict()}
    if task not in TASKS:
        raise BuildFailed(f"{sample.key}: task {task!r} is none of {', '.join(TASKS)}; build this shard again")
    model = _Entry[_Crop] if task.endswith("attribute") else _Entry[_Scene]
    try:
        model.model_validate_json(json.dumps(entry))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise BuildFailed(f"{sample.key}: entry.{where} {first['msg']}; build this shard again") from error
    return entry


GENECIS_FORMAT = Format((TEMPLATE,), write_genecis)
