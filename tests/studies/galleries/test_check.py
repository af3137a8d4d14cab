"""The command that holds a file of templates against the rules of its task."""

from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from studies.galleries.check import main
from tests.generators.galleries.annotated import TAXONOMY, labelled, save, scenes
from twinset.contracts.parts import LeftOut
from twinset.generators.galleries.object_tasks import ObjectDrafts
from twinset.generators.galleries.panoptic import read_scenes

PUBLISHED = Path(__file__).parents[3] / "../shared/data/genecis/change_object.json"


@pytest.fixture
def annotations(tmp_path: Path) -> Path:
    return save(scenes(), tmp_path / "panoptic.json")


def made(annotations: Path) -> list[dict[str, Any]]:
    drafts = ObjectDrafts(read_scenes(annotations, LeftOut()), "change-object", 1, "scenes", LeftOut())
    return [draft.entry for draft in islice(drafts, 30)]


def test_templates_that_keep_the_rules_pass(
    annotations: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    templates = save(made(annotations), tmp_path / "change_object.json")
    assert main([str(templates)]) == main([str(templates), "--annotations", str(annotations)]) == 0
    assert capsys.readouterr().out == "30 templates, 0 problems\n" * 2


def test_what_breaks_a_rule_is_told_with_its_template(
    annotations: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entries = made(annotations)
    entries[3]["gallery"][0], entries[3]["gallery"][13] = entries[3]["gallery"][13], entries[3]["gallery"][0]
    templates = save(entries, tmp_path / "change_object.json")
    assert main([str(templates), "--annotations", str(annotations)]) == 1
    first, *said = capsys.readouterr().out.splitlines()
    problems = sum(int(line.split(": ")[1]) for line in said if not line.startswith("template"))
    assert first == f"30 templates, {problems} problems"
    assert {"far-condition: 1", "far-not-far: 1", "near-condition: 1", "near-not-close: 1"} <= set(said)
    assert {line.split(":")[0] for line in said if line.startswith("template")} == {"template 3"}


def test_wrong_use(annotations: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    templates = save([], tmp_path / "focus_attribute.json")
    vaw, taxonomy = save(labelled(20), tmp_path / "vaw.json"), save(TAXONOMY, tmp_path / "types.json")
    assert main([str(templates), "--annotations", str(vaw), "--taxonomy", str(taxonomy)]) == 0
    for arguments, said in (
        ([annotations], "the name tells the task; call it focus_attribute.json or"),
        ([save({}, tmp_path / "focus_object.json")], "no list of templates"),
        ([templates, "--annotations", vaw], "--taxonomy goes with"),
        ([templates, "--taxonomy", taxonomy], "--taxonomy goes with"),
    ):
        assert main([*map(str, arguments)]) == 2
        assert said in capsys.readouterr().err


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="GeneCIS's change_object.json is not at hand")
def test_the_published_file_is_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(PUBLISHED)]) == 1
    said = capsys.readouterr().out.splitlines()
    assert said[:3] == ["1,960 templates, 168 problems", "target-again: 1", "template-again: 167"]
    assert len(said) == 3 + 1 + 5
