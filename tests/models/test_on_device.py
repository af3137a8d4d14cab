"""What settings of networks say of their device; memory that runs out; what is not installed."""

import os
import subprocess
import sys

import pytest
import torch

from twinset.contracts.errors import WrongUse
from twinset.filters.faces import Faces
from twinset.filters.pixels import SceneCut
from twinset.generators.caption_scores.source import CaptionScores
from twinset.generators.negative_captions.source import NegativeCaptions
from twinset.models.device import check_installed, within_memory
from twinset.models.language_models.settings import LANGUAGE_MODELS
from twinset.shards.contracts import Source

SERVER = {"kind": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}


def test_only_memory_that_runs_out_is_another_error() -> None:
    with pytest.raises(RuntimeError, match="must match the size") as caught:
        within_memory(lambda: torch.ones(2) + torch.ones(3))
    assert caught.type is RuntimeError
    assert within_memory(lambda: 3) == 3


def sources(device: str) -> list[Source]:
    engine, scorer = {"kind": "transformers", "model": "./m", "device": device}, {"kind": "cola", "model": "./cola"}
    scores = {"kind": "caption-scores", "negatives": "n", "scorers": [scorer], "device": device}
    negatives = {"kind": "negative-captions", "captions": "c.json", "engine": engine}
    return [CaptionScores.model_validate(scores), NegativeCaptions.model_validate(negatives)]


def test_what_needs_a_gpu_goes_to_its_pool_one_shard_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for source in sources("gpu"):
        assert (source.pool, source.shards_at_a_time) == ("gpu", 1)
        with pytest.raises(WrongUse, match=r"^subsets\.a\.source\.(engine\.)?device is gpu, .* set it to cpu"):
            source.check_device("subsets.a.source")
    for source in sources("cpu"):
        assert (source.pool, source.shards_at_a_time) == ("cpu", 0)
        source.check_device("source")
    served = NegativeCaptions.model_validate({"kind": "negative-captions", "captions": "c.json", "engine": SERVER})
    assert (served.pool, served.shards_at_a_time) == ("cpu", 1)


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


@pytest.mark.slow
def test_equal_rows_of_a_batch_round_alike_without_avx_512() -> None:
    """MKL's kernels for AVX2 sum the last rows of a matrix in another order, unless they are told not to."""
    code = (
        "import twinset.models.device, torch\n"
        "half, weight = torch.randn(77, 32), torch.randn(128, 32)\n"
        "rows = torch.nn.functional.linear(torch.cat([half, half]), weight, torch.zeros(128))\n"
        "assert torch.equal(rows[:77], rows[77:])\n"
    )
    environment = {**os.environ, "MKL_ENABLE_INSTRUCTIONS": "AVX2"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
