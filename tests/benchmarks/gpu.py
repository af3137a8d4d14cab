"""Rows of the page of benchmarks that need a GPU, and the tests that do: `make gpu`, in eight minutes.

    python -m tests.benchmarks.gpu [NAME ...] [--tiny]

Each row runs in a process and within a time of its own: one that fails, or for which memory runs out, leaves the
others. What stands in the table goes to docs/benchmarks.md. ``--tiny`` tries the rows on the CPU at a size at which no
figure means anything, and keeps none.
"""

import subprocess
import sys
from typing import Any, NamedTuple

from tests.benchmarks.page import ROOT, keep, measure, table
from tests.options import options

TESTS = "pytest"


class Row(NamedTuple):
    """A run of a benchmark. name: without ``bench_``. asked: its arguments; tiny: those of a trial on the CPU.

    seconds: that it may take; of all rows they are eight minutes.
    """

    name: str
    asked: str
    tiny: str
    seconds: float


ROWS = {
    "sdxl": Row(
        "sdxl",
        "--prompts 2 --images 4 --steps 20 --rounds 1",
        "--prompts 1 --images 2 --micro-batch 2 --resolution 64 --steps 1 --rounds 1",
        120,
    ),
    "prompt-to-prompt": Row(
        "prompt_to_prompt", "--pairs 4 --steps 25 --rounds 1", "--tiny --pairs 1 --latent 16 --rounds 1", 55
    ),
    "scoring-b32": Row("features", "--videos 24 --model ViT-B-32 --gpu", "--videos 1 --model ViT-B-32", 40),
    "scoring-l14": Row("features", "--videos 12 --model ViT-L-14 --gpu", "--videos 1 --model ViT-B-32", 45),
    "training-b32": Row(
        "clip_training", "--batch 1024 --steps 5 --gpu", "--batch 2 --steps 1 --rounds 1 --model ViT-B-32", 30
    ),
    "training-l14": Row(
        "clip_training", "--batch 128 --steps 5 --gpu --model ViT-L-14", "--batch 2 --steps 1 --rounds 1", 40
    ),
}
TRIAL = 600  # seconds of a tiny row
SECONDS_OF_TESTS = 480 - sum(row.seconds for row in ROWS.values())  # those with the marker ``gpu``


def main() -> None:
    given = options(__doc__, [*ROWS, TESTS], tiny=False)
    gpu = "" if given.tiny else found_gpu()
    results = {}
    for name in given.names:
        print(f"== {name}", flush=True)
        results[name] = tests_marked_gpu(given.tiny) if name == TESTS else of_row(ROWS[name], given.tiny)
        results[name]["machine"] = ", ".join(filter(None, [gpu, results[name]["machine"]]))
        if not given.tiny:
            keep(name, results[name], on_gpu=True)
    print(f"\n{table(results)}", end="")
    if failed := [name for name in results if results[name]["failed"]]:
        sys.exit(f"failed: {', '.join(failed)}")


def found_gpu() -> str:
    """The GPU and its driver; ends with a line where there is none."""
    import torch

    if not torch.cuda.is_available():
        sys.exit("make gpu: torch finds no CUDA device here; run it where `nvidia-smi` lists one")
    asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
    driver = subprocess.run(asked, capture_output=True, text=True).stdout.strip()
    return f"{torch.cuda.get_device_name()}, driver {driver}"


def of_row(row: Row, tiny: bool) -> dict[str, Any]:
    command = ["-m", f"tests.benchmarks.bench_{row.name}", *(row.tiny if tiny else row.asked).split()]
    return measure(command, TRIAL if tiny else row.seconds)


def tests_marked_gpu(tiny: bool) -> dict[str, Any]:
    files = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if "mark.gpu" in path.read_text()]
    return measure(["-m", "pytest", "-m", "gpu", "-q", "-n", "0", *files], TRIAL if tiny else SECONDS_OF_TESTS)


if __name__ == "__main__":
    main()
