"""The export of templates, read as GeneCIS's released evaluation reads it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.made_datasets import MadeDataset
from tests.made_samples import TASKS, entry_of, gallery_subset, template_shards
from twinset.contracts.errors import BuildFailed, WrongUse
from twinset.shards.export.formats import export
from twinset.shards.read import read_samples

FILES = {task: f"{task.replace('-', '_')}.json" for task in TASKS}


class ReleasedReader:
    """What the released data sets take out of a file: which images a question shows, in which order, and its words.

    Of attributes, images are ``ID.jpg`` of Visual Genome, cut out by ``instance_bbox``; of objects, val2017 of COCO by
    their number with twelve digits. The target comes before the gallery, and is right.
    """

    def __init__(self, root: Path, dataset: str) -> None:
        with (root / f"{dataset}.json").open() as stream:  # in whatever encoding the machine prefers
            self.templates = json.load(stream)
        self.of_attributes = "attribute" in dataset
        assert self.of_attributes or "object" in dataset

    def __len__(self) -> int:
        return len(self.templates)

    def __getitem__(self, number: int) -> tuple[Any, str, list[Any]]:
        template = self.templates[number]
        shown = [template["target"], *template["gallery"]]
        return self._image(template["reference"]), template["condition"], [self._image(one) for one in shown]

    def _image(self, entry: dict[str, Any]) -> Any:
        if not self.of_attributes:
            return f"{entry['val_image_id']:012d}.jpg"
        x, y, width, height = entry["instance_bbox"][:4]
        return f"{entry['image_id']}.jpg", x + y, width * height


@pytest.mark.parametrize("task", TASKS)
def test_the_released_evaluation_reads_every_template(made_templates: MadeDataset, tmp_path: Path, task: str) -> None:
    assert export(made_templates.store, list(FILES), "genecis", tmp_path / "to") == 4 * 8
    assert sorted(path.name for path in (tmp_path / "to").iterdir()) == sorted(FILES.values())
    found = ReleasedReader(tmp_path / "to", task.replace("-", "_"))
    samples = list(read_samples(made_templates.store, task))
    assert len(found) == len(samples) == 8
    for place, sample in enumerate(samples):
        reference, condition, shown = found[place]
        assert condition == sample.texts["condition"]
        assert len(shown) == (10 if task == "focus-attribute" else 15)
        assert found.templates[place] == {**sample.json.entry, **sample.json.terms.columns}
        name = reference[0] if task.endswith("attribute") else reference.lstrip("0")
        assert name in (sample.json.source.files["reference"].path, ".jpg")  # number 0 has no digits left


def test_two_subsets_of_one_task_are_refused(made_templates: MadeDataset, tmp_path: Path) -> None:
    made_templates.add("more-objects", gallery_subset("focus-object"), template_shards("more-objects", "focus-object"))
    with pytest.raises(WrongUse, match=r"focus-object and more-objects are both of the task .* --only"):
        export(made_templates.store, ["focus-object", "more-objects"], "genecis", tmp_path / "to")
    assert not (tmp_path / "to").exists()
    assert export(made_templates.store, ["more-objects"], "genecis", tmp_path / "to") == 8


def test_an_entry_that_the_evaluation_cannot_read_is_not_written(made_templates: MadeDataset, tmp_path: Path) -> None:
    def add(name: str, entry: Callable[[str, int], dict[str, Any]]) -> None:
        made_templates.add(name, gallery_subset("change-object"), template_shards(name, "change-object", entry))

    add("odd", lambda task, number: {"val_image_id": str(number)})
    with pytest.raises(BuildFailed, match=r"odd-\w+: entry\.reference\.val_image_id .*build this shard again"):
        export(made_templates.store, ["odd"], "genecis", tmp_path / "to")
    add("boxed", lambda task, number: entry_of("focus-attribute", number))
    with pytest.raises(BuildFailed, match="val_image_id Field required"):
        export(made_templates.store, ["boxed"], "genecis", tmp_path / "to")
