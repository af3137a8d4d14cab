"""Kinds of sources and filters by name: twinset's own, and those of installed packages.

A recipe names kinds, never code: recipes come from others. What a kind may be is decided by what is installed here:
twinset's own kinds, and entry points of the groups ``twinset.sources`` and ``twinset.filters``.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from twinset.manifests.errors import WrongUse, in_words
from twinset.manifests.source import FilterSettings, SourceSettings

S = TypeVar("S", SourceSettings, FilterSettings)


class UnknownKind(WrongUse):
    """No installed package provides a kind."""


@dataclass(frozen=True)
class Registry(Generic[S]):
    """Classes of settings by kind.

    what: ``source`` or ``filter``, for messages. base: of its classes. home: the package whose ``KINDS`` maps twinset's
    own kinds to ``MODULE:CLASS``; imported when a kind is looked up, as an entry point is. group: of entry points.
    """

    what: str
    base: type[S]
    home: str
    group: str

    def find(self, kind: str) -> type[S]:
        """The class of a kind; raises `UnknownKind` naming those that are near, or all."""
        points = self._points()
        if kind not in points:
            near = difflib.get_close_matches(kind, sorted(points), n=1)
            every = f"install the package that provides it, or name one of {', '.join(sorted(points))}"
            remedy = f"did you mean {near[0]!r}?" if near else every
            raise UnknownKind(f"there is no {self.what} {kind!r} here; {remedy}")
        try:
            found = points[kind].load()
        except Exception as error:
            raise WrongUse(
                f"{self.named(kind)} cannot be imported: {in_words(error)}; correct its package (--verbose shows the "
                "traceback)"
            ) from error
        if not (isinstance(found, type) and issubclass(found, self.base)):
            raise WrongUse(
                f"{self.what} {kind!r}: {found!r} is not a subclass of {self.base.__name__}; correct its package"
            )
        return found

    def kinds(self) -> list[str]:
        """All kinds that a recipe can name on this machine."""
        return sorted(self._points())

    def distribution(self, kind: str) -> str:
        """Name and version of the package that brought a kind; empty for twinset's own."""
        brought = self._points()[kind].dist
        return f"{brought.name} {brought.version}" if brought is not None else ""

    def named(self, kind: str) -> str:
        """A kind for messages, with the package that brought it: ``source 'before-after' of before-after 0.1.0``."""
        brought = self.distribution(kind)
        return f"{self.what} {kind!r}" + (f" of {brought}" if brought else "")

    def _points(self) -> dict[str, EntryPoint]:
        """Of all kinds; no package replaces one of twinset's own."""
        own = import_module(self.home).KINDS
        return _installed(self.group) | {kind: EntryPoint(kind, place, self.group) for kind, place in own.items()}


@cache
def _installed(group: str) -> dict[str, EntryPoint]:
    return {one.name: one for one in entry_points(group=group)}


SOURCES = Registry("source", SourceSettings, "twinset.generators", "twinset.sources")
FILTERS = Registry("filter", FilterSettings, "twinset.filters", "twinset.filters")
