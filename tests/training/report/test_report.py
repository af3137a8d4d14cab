"""What a run says of itself: panels of its curves, TensorBoard's files, card and page."""

import json
import re
import resource
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twinset.training.clip.settings import ClipSettings
from twinset.training.report.write import MOST_LEFT_OUT, MOST_POINTS, About, Curves, binned, panels, write_report

SETTINGS = ClipSettings(data=("out/<b>twins",), model="tiny.json", weights=None, lr=0.5)
PUBLISHED = ClipSettings(data=SETTINGS.data).model_dump(mode="json")
ABOUT = About("A dual encoder: tiny.json", "open_clip:OUT", "accuracy", "Percent.", "BiVLC's", PUBLISHED)
DATA = {
    "data": [
        {"dataset": "out/<b>twins", "subset": "arms", "split": None, "digest": "d" * 64, "examples": 1200, "copies": 1,
         "shards": [{"tar": "arms/test/00000.tar", "samples": 600, "sha256": "a" * 64}]}
    ],
    "validation": [],
}  # fmt: skip
RESULT = {"identity": "i", "runtime": "r", "steps": 3, "sha256": {"last.safetensors": "e" * 64}}


def rows(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"step": n + 1, "epoch": 1, "loss": 2.0 - n / count, "lr": 1e-3, **more} for n in range(count)]


def test_panels_hold_the_curves_that_were_logged_and_no_more() -> None:
    found = {panel.title: panel for panel in panels(rows(3, active_fraction=0.5))}
    assert list(found) == ["loss", "active fraction", "learning rate"]
    assert found["loss"].x.tolist() == [1, 2, 3] and list(found["loss"].y) == ["loss"]
    validated = rows(4)
    validated[3]["validation"] = {"accuracy": 50.0, "loss": 1.0}
    found = {panel.title: panel for panel in panels(validated)}
    assert found["validation: percent"].x.tolist() == [4] and list(found["validation: percent"].y) == ["accuracy"]
    assert panels([]) == []


def test_a_long_curve_is_averaged() -> None:
    long = binned(range(10_000))
    assert len(long) == MOST_POINTS and long.mean() == pytest.approx(np.arange(10_000).mean())
    assert binned([3, 1]).tolist() == [3, 1]


def test_card_and_page_lead_back_to_the_shards_and_name_what_was_left_out(tmp_path: Path) -> None:
    history = rows(3, left_out=[["out/arms/00000.tar: key|1", "its tar is <i>cut</i> short"]])
    best = {"step": 2, "value": 61.803, "sha256": "b" * 64}
    write_report(tmp_path, SETTINGS, DATA, {**RESULT, "best": best}, history, ABOUT)
    card, page = (tmp_path / "README.md").read_text(), (tmp_path / "report.html").read_text()
    assert "| best | step 2, validation accuracy 61.80 % |" in card and "1 examples could not be read" in card
    assert "| data | out/" in card and "| 1,200 | 1 | 1 | " + "d" * 64 in card
    assert json.loads((tmp_path / "data.json").read_bytes())["data"] == DATA["data"]
    assert "<b>twins" not in page and "&lt;b&gt;twins" in page and "<i>cut" not in page
    assert "61.80 %" in page and page.count("data:image/svg+xml;base64,") == 1
    assert not re.search(r"(src|href)=\"(?!data:)", page), "the page needs no other file"
    changed = re.findall(r'<td class="changed">(\w+)</td>', page)
    assert "lr" in changed and "data" not in changed
    again = page
    write_report(tmp_path, SETTINGS, DATA, {**RESULT, "best": best}, history, ABOUT)
    assert (tmp_path / "report.html").read_text() == again


def test_a_card_without_validation_and_with_much_left_out_stays_short(tmp_path: Path) -> None:
    history = rows(3)
    history[0]["left_out"] = [[f"tar: {n}", "broken"] for n in range(100)]
    best = {"step": 3, "value": None, "sha256": "b" * 64}
    write_report(tmp_path, SETTINGS, DATA, {**RESULT, "best": best}, history, ABOUT, pictures=False)
    card = (tmp_path / "README.md").read_text()
    assert "there was no validation data" in card and "100 examples could not be read" in card
    assert card.count("\n- tar: ") == MOST_LEFT_OUT
    assert not (tmp_path / "report.html").exists()


def test_a_resumed_run_hides_what_a_killed_one_logged_after_its_checkpoint(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    history = rows(6)
    with Curves(tmp_path, 0) as curves:
        for row in history:
            curves.add(row)
    history[5]["validation"] = {"accuracy": 50.0}
    with Curves(tmp_path, 3) as curves:
        for row in history[3:]:
            curves.add(row)
    read = EventAccumulator(str(tmp_path / "tensorboard")).Reload()
    assert [event.step for event in read.Scalars("training/loss")] == [1, 2, 3, 4, 5, 6]
    assert [event.value for event in read.Scalars("validation/accuracy")] == [50.0]
    assert "training/left_out" not in read.Tags()["scalars"]


def test_a_full_disk_under_the_curves_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda _: None)  # of TensorBoard's thread, which ends
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    with pytest.raises(OSError) as raised, Curves(tmp_path, 0) as curves:
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))  # Python ignores its signal
        try:
            for row in rows(3):
                curves.add(row)
            curves.__exit__(None, None, None)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
    (note,) = raised.value.__notes__
    assert note.startswith(f"{tmp_path / 'tensorboard'}: free some room")
