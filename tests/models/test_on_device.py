"""No engine's name stands outside of its own file: the classes of pipelines are data of one table.

Running out of memory is one error, however torch says it; any other error stays what it is.
What all settings of networks say of their device.
"""

import os
import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from twinset.contracts.errors import WrongUse
from twinset.contracts.parts import Filter
from twinset.filters.faces import Faces
from twinset.filters.pixels import SceneCut
from twinset.generators.caption_scores.source import CaptionScores
from twinset.generators.image_verification.source import ImageVerification
from twinset.generators.kubric_scenes.source import Kubric
from twinset.generators.negative_captions.source import NegativeCaptions
from twinset.models import image_engine
from twinset.models.device import check_gpu, within_memory
from twinset.models.diffusion.classes import PIPELINES
from twinset.shards.contracts import Source

CHECKOUT = Path(__file__).resolve().parents[2]
PACKAGE = CHECKOUT / "src/twinset"
FILES = [PACKAGE / "__init__.py", *(path for room in PACKAGE.glob("*/") for path in room.rglob("*.py"))]
SOURCES = {path.relative_to(PACKAGE).as_posix(): path.read_text("utf-8") for path in FILES}


def naming(pattern: str) -> set[str]:
    return {path for path, source in SOURCES.items() if re.search(pattern, source)}


def test_pipelines_are_named_in_their_table_alone() -> None:
    assert naming(rf"\b({'|'.join(PIPELINES)})\b") == {"models/diffusion/classes.py"}


def test_no_code_asks_for_an_engine_by_its_name() -> None:
    for name, place in image_engine.KINDS.items():
        own = f"{place.partition(':')[0].removeprefix('twinset.').replace('.', '/')}.py"
        assert naming(rf"""\bkind\b[^\n]{{0,60}}["'`]{re.escape(name)}["'`]""") == {own}, name


def raising(error: Exception) -> Any:
    raise error


def test_other_errors_stay() -> None:
    with pytest.raises(RuntimeError, match="must match the size") as caught:
        within_memory(lambda: torch.ones(2) + torch.ones(3))
    assert caught.type is RuntimeError
    assert within_memory(lambda: 3) == 3


ENGINE = {"kind": "transformers", "model": "./model"}
SERVER = {"kind": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}


def sources(device: str) -> list[Source]:
    engine, scorers = {**ENGINE, "device": device}, [{"kind": "cola", "model": "./cola"}]
    return [
        CaptionScores.model_validate(
            {"kind": "caption-scores", "negatives": "n", "scorers": scorers, "device": device}
        ),
        ImageVerification.model_validate({"kind": "image-verification", "images": "i", "engine": engine}),
        NegativeCaptions.model_validate({"kind": "negative-captions", "captions": "c.json", "engine": engine}),
    ]


def test_what_needs_a_gpu_goes_to_its_pool_one_shard_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    for source in sources("gpu"):
        assert (source.pool, source.shards_at_a_time) == ("gpu", 1)
        with pytest.raises(WrongUse, match=r"^source\.(engine\.)?device is gpu, but torch finds no CUDA device"):
            source.check_device("source")
    for source in sources("cpu"):
        assert (source.pool, source.shards_at_a_time) == ("cpu", 0)
        source.check_device("source")


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ("subsets.eq-sd.source.device", "use --set subsets.eq-sd.source.device=cpu,"),
        ("--device", "use --device cpu,"),
        ("source.device", "write `device: cpu`,"),
    ],
)
def test_what_to_do_without_a_gpu(setting: str, remedy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(WrongUse, match=f"^{re.escape(setting)} is gpu, .*; {re.escape(remedy)} or run this where"):
        check_gpu(setting)


def test_what_renders_names_its_python(monkeypatch: pytest.MonkeyPatch) -> None:
    assets = {"assets": "procedural:manifest.json", "licence": "CC0-1.0"}
    source = Kubric.model_validate({"kind": "kubric", "aspect": "counting", **assets})
    monkeypatch.setattr("twinset.models.device.find_spec", lambda library: None)
    monkeypatch.setattr("sys.version_info", (3, 13, 5, "final", 0))
    with pytest.raises(WrongUse, match=r"^subsets\.k\.source: Kubric needs Python 3\.11, "):
        source.check_device("subsets.k.source")
    monkeypatch.setattr("sys.version_info", (3, 11, 2, "final", 0))
    with pytest.raises(WrongUse, match=r"bpy is not installed; .* pip install 'twinset\[render\]'"):
        source.check_device("subsets.k.source")


def test_other_engines_say_where_they_work() -> None:
    rules = NegativeCaptions.model_validate({"kind": "negative-captions", "captions": "c.json"})
    server = NegativeCaptions.model_validate({"kind": "negative-captions", "captions": "c.json", "engine": SERVER})
    assert [(one.pool, one.shards_at_a_time) for one in (rules, server)] == [("cpu", 0), ("cpu", 1)]


@pytest.mark.parametrize(
    ("chosen", "needed"),
    [
        (SceneCut(kind="scene-cut"), True),
        (Faces(kind="faces"), False),
    ],
)
def test_opencv_is_asked_for_before_work(chosen: Filter, needed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a server without X, where its import fails for `libGL.so.1`."""
    monkeypatch.setitem(sys.modules, "cv2", None)
    chosen.check_inputs("filters.0", ("annotations",))
    words = r"^filters\.0.*: OpenCV cannot be imported .* libgl1 .* opencv-python-headless"
    with pytest.raises(WrongUse, match=words) if needed else nullcontext():
        chosen.check_inputs("filters.0", ("models",))


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
