"""Tables of negatives are probed as they lie in OUT: by kind, without images, and for blind probes alone."""

from pathlib import Path

import pytest

from tests.generators.words_alone.test_probe import captions
from tests.generators.words_alone.test_refined import table, telling
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.blind_probes.run import give_away


@pytest.fixture
def out(tmp_path: Path) -> Path:
    table(
        tmp_path, {"replace_att": captions(300, 0), "add_att": telling(captions(300, 1)), "swap_obj": captions(40, 2)}
    )
    return tmp_path


def test_both_probes_of_each_kind(out: Path) -> None:
    found = give_away(open_benchmark("caption-pairs", out, captions_only=True)).as_json()
    by = found["by"]
    assert {name: row["pairs"] for name, row in by.items()} == {
        "negatives / replace_att": 300,
        "negatives / add_att": 300,
        "negatives / swap_obj": 40,
    }
    assert by["negatives / add_att"]["unpaired_words"] > 0.95 > 0.65 > by["negatives / replace_att"]["unpaired_words"]
    assert by["negatives / swap_obj"]["unpaired_words"] is None
    assert by["negatives / add_att"]["probes"]["text classifier"]["solves"]


def test_captions_alone_are_not_scored_with_images(out: Path) -> None:
    with pytest.raises(WrongUse, match=r"have no images; ask .twinset eval blind caption-pairs=DIR"):
        list(open_benchmark("caption-pairs", out).examples())


def test_a_folder_without_stages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="holds no stage"):
        open_benchmark("caption-pairs", tmp_path)
