"""A built dataset of several kinds of samples is evaluated in parts."""

from pathlib import Path

import pytest

from tests.made_datasets import MadeDataset
from twinset.cli.main import main


def test_a_dataset_of_several_kinds_is_probed_in_the_parts_that_a_run_has(
    made_pairs: MadeDataset,
    made_text_pairs: MadeDataset,
    made_templates: MadeDataset,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert made_pairs.root == made_text_pairs.root == made_templates.root
    assert main(["eval", "blind", f"twinset={made_pairs.root}", "--out", str(tmp_path)]) == 0
    assert {path.name for path in (tmp_path / "probes").iterdir()} == {"twinset-pairs.json", "twinset-text-pairs.json"}
    assert "twinset-galleries: not probed, it has no pairs of captions" in capsys.readouterr().err
