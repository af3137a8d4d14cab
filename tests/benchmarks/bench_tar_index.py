"""The index of WebDataset tars that others wrote: twinset's against tarfile's way through the same headers.

    python tests/benchmarks/bench_tar_index.py [--shards N]

One tar of 10,000 samples is written as img2dataset writes it (jpg, json and txt of each key, a pax header before each
member; images of 2 kB), and linked N times. A process of its own opens all as training data, so that its memory is that
of the index alone; tarfile reads one of them. Printed: CPU seconds a million samples, their ratio, peak memory.
"""

import argparse
import json
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from measured import row

SAMPLES = 10_000
_OPEN = """
import sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from measured import peak_mib
from twinset.training.examples.example_set import open_examples
before, began = peak_mib(), time.process_time()
found = open_examples([f"tars:{sys.argv[1]}"], "pairs", index=Path(sys.argv[2]))
print(len(found), time.process_time() - began, before, peak_mib())
"""


def write(path: Path) -> None:
    """One tar, whose images are noise of the size of a thumbnail."""
    from webdataset import TarWriter

    with TarWriter(str(path), encoder=False) as tar:
        for number in range(SAMPLES):
            caption = f"a photo of {number} with a few words about what stands beside what in it"
            described = {"key": f"{number:09d}", "caption": caption, "status": "success", "url": f"http://x/{number}"}
            text = json.dumps(described).encode()
            tar.write({"__key__": f"{number:09d}", "jpg": os.urandom(2048), "json": text, "txt": caption.encode()})


def by_tarfile(path: Path) -> float:
    """CPU seconds in which tarfile finds the same places and captions."""
    began = time.process_time()
    with tarfile.open(path, "r:") as tar:
        for member in tar:
            if member.name.endswith(".txt"):
                file = tar.extractfile(member)
                assert file is not None
                file.read()
            tar.members = []
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shards", type=int, default=330)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tars").mkdir()
        write(first := folder / "tars/00000.tar")
        for number in range(1, options.shards):
            os.link(first, folder / f"tars/{number:05d}.tar")
        command = [sys.executable, "-c", _OPEN, str(folder / "tars"), str(folder / "index"), str(Path(__file__).parent)]
        for state in ("written and read", "read again"):
            said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
            count, (seconds, before, peak) = int(said[0]), map(float, said[1:])
            print(f"twinset, index {state}: {count:,} samples, {seconds / count * 1e6:.1f} s of one core a million; "
                  f"peak {peak / 1024:.2f} GiB, {before / 1024:.2f} of it for the libraries")  # fmt: skip
            if state == "written and read":
                ours = seconds / count
        naive = by_tarfile(first) / SAMPLES
        row(
            f"index of {count:,} samples of others' tars",
            "tarfile",
            [naive / ours],
            f"{ours * 1e6:.1f} s a million of one core, {peak / 1024:.2f} GiB",
        )
        print(f"tarfile: {naive * 1e6:.1f} s a million; {naive / ours:.2f} times as long")


if __name__ == "__main__":
    main()
