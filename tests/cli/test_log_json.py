"""``--log json``: every line on stderr is a JSON object, whatever happens, and one of each shard says how it ended."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from twinset.cli.main import main


def build(recipe: Path, *options: str, **more: str) -> tuple[int, list[dict[str, Any]], str]:
    """Exit code, lines of stderr and stdout of ``twinset build --log json``."""
    command = ["build", str(recipe), "--out", str(recipe.parent / "out"), "--log", "json", *options]
    done = subprocess.run(
        [sys.executable, "-m", "twinset.cli.main", *command], env={**os.environ, **more}, capture_output=True, text=True
    )
    return done.returncode, [json.loads(line) for line in done.stderr.splitlines()], done.stdout


def shards(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted((line for line in lines if "shard" in line), key=lambda line: line["shard"])


def test_a_line_of_each_shard_and_the_counts_on_stdout(recipe: Path) -> None:
    (recipe.parent / "images/0-0.png").write_bytes(b"no picture")
    code, lines, stdout = build(recipe, "--json", "--set", "max_missing=0.5")
    assert code == 0 and json.loads(stdout)["subsets"]["pairs"]["kept"] == 5
    assert all(line["time"].endswith("+00:00") for line in lines)
    assert any(line.get("message") == "pairs: making 3 of 3 shards" for line in lines)
    first, *others = shards(lines)
    assert first.keys() - {"time"} == {*("stage", "shard", "kept", "rejected", "seconds", "bytes", "attempts", "error")}
    assert [first[name] for name in ("stage", "shard", "kept", "rejected", "attempts", "error")] == [
        *("pairs", 0, 1, 1, 1),
        None,
    ]
    assert first["seconds"] > 0 and first["bytes"] > 1000 and [one["kept"] for one in others] == [2, 2]
    assert shards(build(recipe, "--set", "max_missing=0.5")[1]) == []  # nothing to do


def test_a_part_that_fails_says_which_shard_and_why(recipe: Path) -> None:
    assert build(recipe, "--plan-only", "--stage", "pairs")[0] == 0
    plan = recipe.parent / "out/pairs/_meta/plan/00000.parquet"
    plan.write_bytes(plan.read_bytes()[:-10])
    code, lines, _ = build(recipe, "--part", "1/3", "--stage", "pairs")
    (failed,) = shards(lines)
    assert code == 1 and failed["shard"] == 1 and "not the candidates of shard 00001" in failed["error"]
    assert (failed["kept"], failed["bytes"]) == (0, 0) and lines[-1]["message"].startswith("pairs shard 00001: ")


def test_wrong_use_is_told_in_json_and_prefect_keeps_its_own_log(recipe: Path, capsys: Any) -> None:
    code, lines, _ = build(recipe, "--set", "subsets.pairs.source.media=nowhere")
    assert code == 2 and "nowhere" in lines[-1]["message"]
    code, lines, _ = build(recipe, PREFECT_API_URL="http://127.0.0.1:9/api")
    assert code == 2 and "unset PREFECT_API_URL, or leave --log out" in lines[-1]["message"]
    assert main(["build", "nothing.yaml", "--out", str(recipe.parent / "out"), "--log", "json"]) == 2
    assert [*map(json.loads, capsys.readouterr().err.splitlines())][-1].keys() == {"time", "message"}
    assert main(["status", str(recipe.parent / "out")]) == 2
    assert capsys.readouterr().err.startswith("twinset: ")
