"""Frames for boundary grounding: which ones, when, and that they are decoded in runs."""

import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from tests.evaluation.benchmarks.made_files import put
from tests.evaluation.benchmarks.made_layouts import film
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import boundaries, open_benchmark
from twinset.evaluation.benchmarks.boundaries import sampled
from twinset.evaluation.benchmarks.reader import Reader
from twinset.evaluation.examples import Grounding, LeftOut
from twinset.generators.video import frames as video_frames

Opener = Callable[..., Reader]


@given(gaps=st.lists(st.floats(0.005, 1.5), min_size=0, max_size=60))
def test_sampled_times_are_the_nearest_to_fifths_of_a_second(gaps: list[float]) -> None:
    times = np.concatenate([[0.0], np.cumsum(gaps)])
    found = sampled(times)
    assert found[0] == 0 and (np.diff(found) > 0).all() and np.isin(found, times).all()
    for number in range(int(times[-1] * 5) + 1):
        assert np.abs(found - number / 5).min() == pytest.approx(np.abs(times - number / 5).min())


def test_frames_are_five_a_second_and_know_their_times(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("gebc")
    found = [item for item in benchmark.examples() if isinstance(item, Grounding)]
    assert [one.key for one in found] == ["val/-0-s1eu4sF4_0A", "val/SIbQ1aJ8eLM_3A", "val/SIbQ1aJ8eLM_3B"]
    first, second, third = found
    assert first.times == pytest.approx(np.arange(10) / 5, abs=0.021) and len(first.frames) == 10
    assert first.captions == ("Person in red stands.", "Person in red sits down.")
    assert (first.boundary, first.category, first.group) == (0.5, "Change of Action", "-0-s1eu4sF4")
    assert second.frames is third.frames  # encoded once
    for at, shown in enumerate(first.frames):
        grey = np.asarray(Image.open(io.BytesIO(shown.read())))[4:-4, 4:-4].mean()
        assert grey == pytest.approx(4 * round(first.times[at] * 25), abs=4)


def test_a_video_is_decoded_in_runs(made_benchmark: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    original = video_frames.read_frames

    def counted(path: Path, addresses: list[float], addressing: str) -> object:
        runs.append(len(addresses))
        return original(path, addresses, "seconds")

    monkeypatch.setattr(video_frames, "read_frames", counted)
    monkeypatch.setattr(boundaries, "TOGETHER", 4)
    first = next(item for item in made_benchmark("gebc").examples() if isinstance(item, Grounding))
    for shown in first.frames:
        shown.read()
    assert runs == [4, 4, 2]


def test_what_cannot_be_grounded_is_counted(made_benchmark: Opener, tmp_path: Path) -> None:
    benchmark = made_benchmark("gebc")
    film(tmp_path / "videos" / "-0-s1eu4sF4_000010_000020.mp4", 0.3)
    (tmp_path / "videos" / "SIbQ1aJ8eLM.mp4").write_bytes(b"no video")
    reasons = [item.reason for item in _items(benchmark)]
    assert reasons == ["boundary outside the video", "no words for one side", "broken video", "broken video"]
    film(tmp_path / "videos" / "SIbQ1aJ8eLM.mp4", 0.04)
    assert [item.reason for item in _items(benchmark)][2:] == ["video of one frame"] * 2


def _items(benchmark: Reader) -> list[LeftOut]:
    found = []
    with pytest.raises(WrongUse, match="all 4 examples are left out"):
        for item in benchmark.examples():
            assert isinstance(item, LeftOut)
            found.append(item)
    return found


def test_a_name_that_leads_out_is_refused(made_benchmark: Opener) -> None:
    benchmark = made_benchmark("gebc")
    put(benchmark.data / "val.json", {"../../etc/video": []})
    with pytest.raises(WrongUse, match=r"val\.json video '\.\./\.\./etc/video': .* leaves the folder"):
        list(open_benchmark("gebc", benchmark.data).examples())
