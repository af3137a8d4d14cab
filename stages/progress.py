"""How a running build reports where it is; the engine calls it, the command line and Prefect show it."""

from typing import Protocol


class Progress(Protocol):
    """Reported to by a build, from several threads."""

    def begin(self, stage: str, total: int, done: int) -> None:
        """A stage has shards to make: ``done`` of ``total`` are made already."""

    def advance(self, stage: str) -> None:
        """One more shard of a stage is made."""

    def phase(self, stage: str, doing: str) -> None:
        """A stage does something other than making shards, such as ``planning``; empty when it has ended."""


class Silent:
    """Shows nothing."""

    def begin(self, stage: str, total: int, done: int) -> None: ...

    def advance(self, stage: str) -> None: ...

    def phase(self, stage: str, doing: str) -> None: ...
