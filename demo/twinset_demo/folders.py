"""Options that both commands of the demo have."""

import argparse
from pathlib import Path


def add_demo_folders(command: argparse.ArgumentParser, what: str, data: str, out: str) -> None:
    """Add ``--data`` and ``--out`` of a demo, which has defaults for both.

    Args:
        what: is built where ``data`` does not hold it.
    """
    built = f"folder of {what}, built first where it is absent"
    for options, place, said in ((["--data"], data, built), (["-o", "--out"], out, "folder of the run")):
        command.add_argument(*options, type=Path, default=Path(place), metavar="DIR", help=f"{said} (default: {place})")
