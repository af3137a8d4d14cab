"""Parts as a scheduler runs them: processes side by side in any order, some of them twice, some of them killed."""

import random
from pathlib import Path
from typing import Any

import pytest

from tests.end_to_end.conftest import contents
from tests.waiting import wait_until

PARTS = 8
SEED = 29


@pytest.mark.slow
def test_eight_parts_two_of_them_twice_and_one_killed_make_what_a_build_makes(
    start_twinset: Any, dag_recipe: Path, dag_reference: Path, twinset: Any, tmp_path: Path
) -> None:
    chance, out = random.Random(SEED), tmp_path / "out"
    command = ("build", dag_recipe, "--out", out, "--workers", "1")
    for stage, home in (("scene-graphs", "_stages/scene-graphs"), ("triplets", "triplets"), ("focus-object",) * 2):
        result = twinset(*command, "--stage", stage, "--plan-only")
        assert result.returncode == 0, result.stderr

        def start(part: int, stage: str = stage) -> Any:
            return start_twinset(*command, "--stage", stage, "--part", f"{part}/{PARTS}")

        order = chance.sample(range(PARTS), PARTS)
        killed = start(order[0])
        wait_until(lambda home=home: any(out.glob(f"{home}/_meta/rows/*")) or any(out.glob("_spool/*")), pause=0.002)
        killed.kill()
        killed.wait()
        twice = chance.sample(order, 2)
        for first, second in zip(order[::2], order[1::2], strict=True):
            running = [start(part) for part in (first, second) for _ in range(1 + (part in twice))]
            assert [process.wait() for process in running] == [0] * len(running), (tmp_path / "log").read_text()[-2000:]
    result = twinset(*command, "--finish")
    assert result.returncode == 0, result.stderr
    assert contents(out) == contents(dag_reference)
