"""EQ-GEBC as EqBen made it: from the annotation's plan through people's decisions, imported from a CSV, to the set."""

import csv
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from twinset.cli.main import main
from twinset.shards.plan import read_parquet
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store


def pairs_of(out: Path, home: str) -> dict[str, Mapping[str, bytes]]:
    return {one.key: one.fields for one in read_samples(Store(str(out)), home)}


def tasks_of(out: Path) -> dict[str, str]:
    """Key of each task by that of its pair."""
    plan = sorted((out / "_stages/eq-gebc-decisions/_meta").rglob("plan*/*.parquet"))
    rows: list[dict[str, Any]] = []
    for path in plan:
        if path.name != "shards.parquet":
            with path.open("rb") as stream:
                rows += read_parquet(stream, ["key", "subject"]).to_pylist()
    return {row["subject"]: row["key"] for row in rows}


@pytest.mark.slow  # of default tests, those of screened pairs ask the same of fewer pictures
def test_decisions_from_a_csv_make_the_final_set(
    small_recipe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, decisions = tmp_path / "out", tmp_path / "decisions.csv"
    build = [
        "build",
        str(small_recipe),
        "--only",
        "eq-gebc",
        "--out",
        str(out),
        "--set",
        "subsets.eq-gebc.screening=true",
    ]
    assert main(build) == 3
    unscreened = pairs_of(out, "_stages/eq-gebc-candidates")
    tasks = tasks_of(out)
    assert tasks.keys() == unscreened.keys() and len(tasks) >= 3
    count, dropped = len(tasks), sorted(tasks)[::3]
    waits = f"eq-gebc-decisions: {count} of {count} decisions are missing; ask people with: twinset review {out}"
    assert waits in capsys.readouterr().err

    with decisions.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["annotator", "task", "answer", "reason"])
        for pair, task in tasks.items():
            writer.writerow(["ann", task, *(["drop", "not-visible"] if pair in dropped else ["keep", ""])])
    assert main(["review", str(out), "--import", str(decisions)]) == 0
    assert "all decisions are in; run the same build again" in capsys.readouterr().err
    assert main([*build, "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)["subsets"]["eq-gebc"]
    assert (counts["planned"], counts["rejected"]) == (count, {"screened-out": len(dropped)})
    assert pairs_of(out, "eq-gebc") == {key: fields for key, fields in unscreened.items() if key not in dropped}

    card = " ".join((out / "eq-gebc/README.md").read_text().split())
    lost, left = len(dropped), count - len(dropped)
    for words in (
        f"People judged {count} pairs and kept {left}; {lost} {'was' if lost == 1 else 'were'} dropped.",
        f"| the difference cannot be seen | {lost} | {lost / count:.1%} |",
        "1 person gave",
        "in the file format of Kinetics-GEB+ (GEBC) following [EqBen]",
        "people looked at the pair and dropped it",
        "known_as: eq-gebc",
    ):
        assert words in card, words
