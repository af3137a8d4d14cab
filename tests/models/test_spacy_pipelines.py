"""Pipelines of spaCy that are not installed, damaged or hostile are refused."""

import shutil
from pathlib import Path

import pytest

from twinset.contracts.errors import WrongUse
from twinset.models.spacy_pipelines import EMBEDDED, check_installed, find_pipeline, load_pipeline


def test_a_library_or_pipeline_that_is_not_installed_is_named_before_work() -> None:
    check_installed("stages.graphs.source", EMBEDDED)
    with pytest.raises(WrongUse, match=r"^stages\.graphs\.source: no-such-parser is not installed; pip install"):
        check_installed("stages.graphs.source", EMBEDDED, "no-such-parser")
    with pytest.raises(WrongUse, match=r"^stages\.graphs\.source\.pipeline: pipeline no_such: neither"):
        check_installed("stages.graphs.source", "no_such")


def test_a_pipeline_of_spacy_with_a_link_a_damaged_file_or_a_tensor_less_is_refused(tmp_path: Path) -> None:
    at = Path(shutil.copytree(find_pipeline().source, tmp_path / "pipeline"))
    strings = at / "vocab/strings.json"
    known = strings.read_bytes()
    strings.write_text("0.5")
    with pytest.raises(WrongUse, match=r"spaCy cannot load it \('float' object is not iterable\)"):
        load_pipeline(find_pipeline(str(at)), ("DEP",))
    strings.write_bytes(known)
    model = at / "parser/model"
    model.write_bytes(model.read_bytes()[: model.stat().st_size // 2])
    with pytest.raises(WrongUse, match="spaCy cannot load it"):
        load_pipeline(find_pipeline(str(at)), ("DEP",))
    model.rename(tmp_path / "outside")
    model.symlink_to(tmp_path / "outside")
    with pytest.raises(WrongUse, match="out of the model's folder"):
        find_pipeline(str(at))
