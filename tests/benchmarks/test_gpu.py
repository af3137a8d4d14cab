"""`make gpu`: each row fails by itself, and on the CPU each can be tried."""

from pathlib import Path

import pytest

from tests.benchmarks.gpu import ROWS, SECONDS_OF_TESTS, found_gpu, of_row
from tests.benchmarks.page import ON_A_GPU, measure, page, table

TELLS = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); from measured import row; "


def test_a_row_that_fails_or_takes_too_long_leaves_the_others() -> None:
    found = {
        "good": measure(["-c", f"{TELLS}row('8 images', 'the script', [2.0, 3.0], '4 | 5')"], 60),
        "bad": measure(["-c", f"{TELLS}row('begun', '', [1.0]); sys.exit('CUDA out of memory')"], 60),
        "slow": measure(["-c", "while True: pass"], 0.5),
    }
    shown = table(found)
    assert "| `good`: 8 images | the script | 2.5 × (2–3); 4 \\| 5 |" in shown and "| `bad`: begun |" in shown
    assert "| `bad` | | ended with exit code 1: CUDA out of memory |" in shown
    assert "| `slow` | | stopped after 0.5 s: it said nothing |" in shown
    assert page({"gpu": found}).endswith(shown) and page({}).endswith(f"{ON_A_GPU}Not measured yet: no GPU.\n")


def test_it_ends_in_eight_minutes_and_without_a_gpu_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert SECONDS_OF_TESTS >= 30 and sum(row.seconds for row in ROWS.values()) + SECONDS_OF_TESTS == 480
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(SystemExit, match="make gpu: torch finds no CUDA device here; run it where"):
        found_gpu()


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_each_row_at_a_tiny_size_on_the_cpu(name: str) -> None:
    found = of_row(ROWS[name], tiny=True)
    assert not found["failed"] and found["rows"]
