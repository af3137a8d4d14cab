"""Export to the files that GeneCIS's released evaluation reads (facebookresearch/genecis, `eval/evaluate.py`).

    DIR/focus_attribute.json        `genecis_root` is DIR, --dataset is focus_attribute, change_attribute,
    DIR/focus_object.json …         focus_object or change_object

Each is a list of ``{condition, gallery, reference, target}``, the gallery without the target. Images are named, not
written: the evaluation reads them from its own folders of Visual Genome (``{image_id, instance_bbox}``, which it cuts
out itself, whatever `crops` the shards were made with) and of COCO's val2017 (``{val_image_id}``, a number).
"""

import itertools
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from twinset.manifests.errors import BuildFailed, WrongUse
from twinset.shards.export.formats import Format
from twinset.shards.kinds.kind import Stored
from twinset.shards.kinds.template import TEMPLATE, TemplateRecord
from twinset.shards.read import of_kind, read_samples
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
        with path.open("w", encoding="ascii") as stream, closing(JsonArray(stream)) as array:
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
    entry = dict(sample.json.entry)
    model = _Entry[_Crop] if sample.json.task.endswith("attribute") else _Entry[_Scene]
    try:
        model.model_validate_json(as_json(entry))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise BuildFailed(f"{sample.key}: entry.{where} {first['msg']}; build this shard again") from error
    return entry


GENECIS_FORMAT = Format(TEMPLATE, export_genecis)
