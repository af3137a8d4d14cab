"""The export of templates, read as GeneCIS's released evaluation reads it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.made_datasets import MadeDataset
from tests.made_samples import TASKS, gallery_subset, template_shards
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.shards.export.formats import export
from twinset.shards.read import read_samples

FILES = {task: f"{task.replace('-', '_')}.json" for task in TASKS}


def released(template: dict[str, Any], of_attributes: bool) -> list[Any]:
    """The images that the released data sets take out of an entry: the reference, the target, which is right, the rest.

    Of attributes, images are ``ID.jpg`` of Visual Genome, cut out by ``instance_bbox``; of objects, val2017 of COCO by
    their number with twelve digits.
    """
    shown = [template["reference"], template["target"], *template["gallery"]]
    if not of_attributes:
        return [f"{one['val_image_id']:012d}.jpg" for one in shown]
    return [(f"{one['image_id']}.jpg", *map(float, one["instance_bbox"][:4])) for one in shown]


@pytest.mark.parametrize("task", TASKS)
def test_the_released_evaluation_reads_every_template(made_templates: MadeDataset, tmp_path: Path, task: str) -> None:
    assert export(made_templates.store, list(FILES), "genecis", tmp_path / "to") == 4 * 8
    assert sorted(path.name for path in (tmp_path / "to").iterdir()) == sorted(FILES.values())
    found = json.loads((tmp_path / "to" / FILES[task]).read_text("ascii"))
    for template, sample in zip(found, read_samples(made_templates.store, task), strict=True):
        assert template == {**sample.json.entry, **sample.json.terms._asdict()}
        assert template["condition"] == sample.texts["condition"]
        shown = released(template, task.endswith("attribute"))
        assert len(set(shown)) == len(sample.images) == (1 + 10 if task == "focus-attribute" else 1 + 15)


def test_two_subsets_of_one_task_are_refused(made_templates: MadeDataset, tmp_path: Path) -> None:
    made_templates.add("more-objects", gallery_subset("focus-object"), template_shards("more-objects", "focus-object"))
    with pytest.raises(WrongUse, match=r"focus-object and more-objects are both of the task .* --only"):
        export(made_templates.store, ["focus-object", "more-objects"], "genecis", tmp_path / "to")
    assert not (tmp_path / "to").exists()
    assert export(made_templates.store, ["more-objects"], "genecis", tmp_path / "to") == 8


def test_an_entry_that_the_evaluation_cannot_read_is_not_written(made_templates: MadeDataset, tmp_path: Path) -> None:
    shards = template_shards("odd", "change-object", lambda task, number: {"val_image_id": str(number)})
    made_templates.add("odd", gallery_subset("change-object"), shards)
    with pytest.raises(BuildFailed, match=r"odd-\w+: entry\.reference\.val_image_id .*build this shard again"):
        export(made_templates.store, ["odd"], "genecis", tmp_path / "to")
