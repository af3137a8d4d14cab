"""What settings of networks say of their device; what is not installed."""

import sys

import pytest

from twinset.contracts.errors import WrongUse
from twinset.filters.faces import Faces
from twinset.filters.pixels import SceneCut
from twinset.generators.negative_captions.source import NegativeCaptions
from twinset.models.device import check_installed
from twinset.models.language_models.settings import LANGUAGE_MODELS
from twinset.shards.contracts import Source


def written_by(**engine: str) -> Source:
    return NegativeCaptions.model_validate({"kind": "negative-captions", "captions": "c.json", "engine": engine})


def test_what_needs_a_gpu_goes_to_its_pool_one_shard_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    on_gpu, on_cpu = (written_by(kind="transformers", model="./m", device=device) for device in ("gpu", "cpu"))
    with pytest.raises(WrongUse, match=r"^subsets\.a\.source\.engine\.device is gpu, .* set it to cpu"):
        on_gpu.check_device("subsets.a.source")
    on_cpu.check_device("source")
    served = written_by(kind="openai", model="m", base_url="http://127.0.0.1:1/v1")
    assert [source.pool for source in (on_gpu, on_cpu, served)] == ["gpu", "cpu", "cpu"]
    assert [source.shards_at_a_time for source in (on_gpu, on_cpu, served)] == [1, 0, 1]


@pytest.mark.parametrize("kind", ["transformers", "vlm", "vqa"])
def test_shards_never_ask_one_network_side_by_side(kind: str) -> None:
    """Qwen-VL keeps the places of one pass for the next: another shard's image set those of a third of the answers."""
    assert LANGUAGE_MODELS.find(kind)(kind=kind, model="./m").open().isolation == "process"


def test_what_is_not_installed_is_named_before_work(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WrongUse, match=r"^k: no_such is not installed; .*pip install 'twinset\[render\]'"):
        check_installed("k", ("torch", "no_such"), "render")
    monkeypatch.setitem(sys.modules, "cv2", None)  # as on a server without X, where its import fails for libGL.so.1
    SceneCut(kind="scene-cut").check_inputs("filters.0", ("annotations",))
    Faces(kind="faces").check_inputs("filters.0", ("models",))
    with pytest.raises(WrongUse, match=r"^filters\.0.*: OpenCV cannot be imported .* libgl1 .* opencv-python-headless"):
        SceneCut(kind="scene-cut").check_inputs("filters.0", ("models",))
