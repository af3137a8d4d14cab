"""The scalars of a run as TensorBoard's event files."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

#: Of a row of the history, what is not a curve.
NO_CURVES = frozenset({"step", "epoch", "left_out", "validation"})


class Curves:
    """Writes ``OUT/tensorboard``. What a killed run logged after its last checkpoint is hidden by the resumed one.

    Args:
        first: steps taken before.
    """

    def __init__(self, out: Path, first: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._folder = out / "tensorboard"
        self._writer = SummaryWriter(str(self._folder), purge_step=first + 1)

    def __enter__(self) -> Curves:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._explained():
            self._writer.close()

    def add(self, row: Mapping[str, Any]) -> None:
        """Write a row of the history."""
        with self._explained():
            for name, value in scalars(row).items():
                self._writer.add_scalar(name, value, row["step"])

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:  # raised by TensorBoard's own thread, which does not name its file
            note = f"{self._folder}: free some room and run the same command again, which resumes"
            if note not in getattr(error, "__notes__", ()):  # closing raises the same one again
                error.add_note(note)
            raise


def scalars(row: Mapping[str, Any]) -> dict[str, float]:
    """The curves that a row has a point of: ``training/NAME`` and ``validation/NAME``."""
    found = {f"training/{name}": float(value) for name, value in row.items() if name not in NO_CURVES}
    return found | {f"validation/{name}": float(value) for name, value in row.get("validation", {}).items()}
