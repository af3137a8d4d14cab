"""Pipelines of spaCy: found by name or path, never downloaded, told apart by their files, refused where not whole."""

import shutil
from pathlib import Path

import pytest

from twinset.contracts.errors import WrongUse
from twinset.models.spacy_pipelines import ALL_EMBEDDED, EMBEDDED, check_installed, find_pipeline, load_pipeline

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(find_pipeline().source, tmp_path / "copy"))


def test_the_embedded_pipelines_are_whole() -> None:
    digests = {
        "en_captions_sm": "11438870ad97720919b81a12e6ddf66c",
        "en_ewt_sm": "209a4735bf250717cb5329781b20b22e",
    }
    assert {name: find_pipeline(name).digest for name in ALL_EMBEDDED} == digests  # relations change with them
    assert find_pipeline() == find_pipeline(EMBEDDED)
    assert not any(find_pipeline(name).torch for name in ALL_EMBEDDED)
    credits = (ROOT / "generators/scene_graphs/CREDITS.md").read_text()
    assert "CC BY-SA 4.0" in credits and all(f"## {name}" in credits for name in ALL_EMBEDDED)


def test_a_pipeline_is_told_by_its_files(copy: Path) -> None:
    pipeline = find_pipeline(str(copy))
    assert (pipeline.digest, pipeline.source) == (find_pipeline().digest, str(copy))
    config = (copy / "config.cfg").read_text()
    (copy / "config.cfg").write_text(config.replace("spacy.MaxoutWindowEncoder.v2", "spacy.TorchBiLSTMEncoder.v1"))
    assert find_pipeline(str(copy)).digest != pipeline.digest and find_pipeline(str(copy)).torch


def test_what_is_not_a_whole_pipeline_is_refused(copy: Path, tmp_path: Path) -> None:
    for name in ("json", str(tmp_path)):
        with pytest.raises(WrongUse, match=r"not a spaCy pipeline, which has a config\.cfg"):
            find_pipeline(name)
    for name in ("en_core_web_zz", "../gone", "json.decoder", "__main__"):
        with pytest.raises(WrongUse, match=f"{name}: neither an installed package nor a folder; .*downloaded"):
            find_pipeline(name)
    check_installed("stages.a", EMBEDDED)
    with pytest.raises(WrongUse, match=r"^stages\.a: no-such-parser is not installed; pip install"):
        check_installed("stages.a", EMBEDDED, "no-such-parser")
    (copy / "parser/model").write_bytes((copy / "parser/model").read_bytes()[:999])
    with pytest.raises(WrongUse, match="spaCy cannot load it"):
        load_pipeline(find_pipeline(str(copy)))
    (copy / "parser/model").rename(tmp_path / "outside")
    (copy / "parser/model").symlink_to(tmp_path / "outside")
    with pytest.raises(WrongUse, match="out of the model's folder"):
        find_pipeline(str(copy))
