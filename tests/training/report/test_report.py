"""What a run says of itself: panels of its curves, card and page."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from twinset.training.clip.settings import ClipSettings
from twinset.training.report.write import MOST_POINTS, panels, write_report

PLACES = ("out/<b>twins:arms", "s3://bucket/made*2", "/data")  # a dataset's own place is absolute
SETTINGS = ClipSettings(data=PLACES, model="/home/ann lee/models/tiny.json", weights=None, lr=0.5)
ABOUT = {
    "what": f"A dual encoder: {SETTINGS.model}", "model": "open_clip:OUT", "best_by": "accuracy", "figures": "Percent.",
    "recipe": "BiVLC's", "published": SETTINGS.defaults(), "command": "run",
}  # fmt: skip
DATA = {
    "data": [
        {"dataset": "/home/ann lee/out/<b>twins", "subset": "arms", "split": None, "digest": "d" * 64,
         "examples": 1200, "shards": [{"tar": "arms/test/00000.tar", "samples": 600, "sha256": "a" * 64}]}
    ],
    "validation": [],
}  # fmt: skip
RESULT = {"identity": "i", "runtime": "r", "steps": 3, "sha256": {"last.safetensors": "e" * 64}}


def rows(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"step": n + 1, "epoch": 1, "loss": 2.0 - n / count, "lr": 1e-3, **more} for n in range(count)]


def test_panels_hold_the_curves_that_were_logged_with_chance_and_no_more() -> None:
    history = rows(4, active_v2=0.5, chance=1.5, image_accuracy=2.5)
    history[3]["validation"] = {"accuracy": 50.0, "chance": 1.5}
    drawn = {panel.title: panel for panel in panels(history)}
    validated = "validation: accuracy (percent)"
    assert [*drawn] == ["loss", "accuracy (percent)", "hinges above the margin (percent)", "learning rate", validated]
    assert drawn["loss"].x.tolist() == [1, 2, 3, 4] and [*drawn["accuracy (percent)"].y] == ["image_accuracy", "chance"]
    assert drawn[validated].x.tolist() == [4] and [*drawn[validated].y] == ["accuracy", "chance"]
    long = panels(rows(28_000))[0].x
    assert MOST_POINTS / 2 < len(long) <= MOST_POINTS and len({*np.diff(long)}) == 1


def test_card_and_page_lead_back_to_the_shards_and_name_no_folder_of_a_machine(tmp_path: Path) -> None:
    history = rows(3, left_out=[[f"{DATA['data'][0]['dataset']}/arms/00000.tar: key|1", "its tar is <i>cut</i> short"]])
    best = {"step": 2, "value": 61.803, "sha256": "b" * 64}
    write_report(tmp_path, SETTINGS, DATA, {**RESULT, "best": best}, history, ABOUT)
    card, page, data = ((tmp_path / name).read_text() for name in ("README.md", "report.html", "data.json"))
    assert "| best | step 2, validation accuracy 61.80 % |" in card and "1 examples could not be read" in card
    assert "| 1,200 | 1 | " + "d" * 64 in card and "A dual encoder: tiny.json." in card and "s3://bucket/made" in card
    assert json.loads(data)["data"] == [{**DATA["data"][0], "dataset": "<b>twins"}]
    for text in (card, page, data):
        assert "ann lee" not in text and "home/" not in text and not re.search(r"(?<![\w<])/data", text)
    assert "<b>twins" not in page and "&lt;b&gt;twins" in page and "<i>cut" not in page
    assert page.count("data:image/svg+xml;base64,") == 1
    assert not re.search(r"(src|href)=\"(?!data:)", page), "the page needs no other file"
    changed = re.findall(r'<td class="changed">(\w+)</td>', page)
    assert "lr" in changed and "data" not in changed and "batch" not in changed
    write_report(tmp_path, SETTINGS, DATA, {**RESULT, "best": {**best, "value": None}}, history, ABOUT)
    assert "there was no validation data" in (tmp_path / "README.md").read_text()
