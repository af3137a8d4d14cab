"""Doors: what a recipe or a command chooses by name comes from twinset or from any installed package.

A recipe names kinds, never code: recipes come from others. What a name may be is decided by what is installed here:
twinset's own parts, and entry points of one group for each door. Installed packages are trusted, recipes are not.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from typing import Any, Generic, TypeVar, cast, get_args

from pydantic import BaseModel, BeforeValidator, ValidationError, ValidationInfo
from pydantic_core import PydanticCustomError

from twinset.contracts.errors import WrongUse, in_words, suggested

BESIDE = ("twinset-demo", "twinset-extras")  # distributions of this project
MORE = f" (to install more: packages such as {' and '.join(BESIDE)})"

T = TypeVar("T")


class UnknownKind(WrongUse, ValueError):
    """No installed package provides a kind, or a file at a path."""


@dataclass(frozen=True, eq=False)
class Registry(Generic[T]):
    """One door: parts by name; ``Annotated[SerializeAsAny[BASE], DOOR]`` are settings of one of them.

    what: ``source`` or ``filter``, for messages. base: the class of the parts, or of which they are subclasses. home:
    the module whose ``KINDS``, or what is named after a colon, maps twinset's own names to ``MODULE:NAME``, imported
    when a part is looked up. group: of entry points. beside: kinds of one setting alone, which are no parts.
    """

    what: str
    base: type[Any]
    home: str
    group: str
    beside: Mapping[str, type[Any]] = field(default_factory=dict)

    def find(self, kind: str, more: Iterable[str] = ()) -> T:
        """The part of a name; raises `UnknownKind`, or `WrongUse` where its package is broken. more: also to name."""
        points = self._points()
        if kind not in points:
            known = sorted({*points, *self.beside, *more})
            raise UnknownKind(f"there is no {self.what} {kind!r} here; {suggested(kind, known)}{MORE}")
        brought = (point for point in all_installed().get(self.group, ()) if point.name == kind)
        packages = {point.dist.name for point in brought if point.dist}
        if len(packages) > 1 and kind not in self.own():
            listed = " and with ".join(sorted(packages))
            raise WrongUse(f"{self.what} {kind!r} comes with {listed}; uninstall all but one")
        try:
            part = points[kind].load()
        except (Exception, SystemExit) as error:
            problem = f"{in_words(error)}; correct its package (--verbose shows the traceback)"
            raise WrongUse(f"{self.named(kind)} cannot be imported: {problem}") from error
        if not isinstance(part, self.base) and not (isinstance(part, type) and issubclass(part, self.base)):
            raise WrongUse(f"{self.named(kind)}: {part!r} is no {self.base.__name__}; correct its package")
        return cast(T, part)

    def kinds(self) -> list[str]:
        """All names that can be chosen on this machine."""
        return sorted(self._points())

    def own(self) -> Mapping[str, str]:
        """Twinset's own names, in their order, with the places of their parts."""
        home, _, name = self.home.partition(":")
        return cast(Mapping[str, str], getattr(import_module(home), name or "KINDS"))

    def distribution(self, kind: str) -> str:
        """Name and version of the package that brought a kind; empty for twinset's own."""
        package = getattr(self._points().get(kind), "dist", None)
        return f"{package.name} {package.version}" if package else ""

    def named(self, kind: str) -> str:
        """A kind for messages, with the package that brought it: ``source 'before-after' of before-after 0.1.0``."""
        package = self.distribution(kind)
        return f"{self.what} {kind!r}{package and ' of '}{package}"

    def _points(self) -> dict[str, EntryPoint]:
        """Of all kinds; no package replaces one of twinset's own."""
        own = {kind: EntryPoint(kind, place, self.group) for kind, place in self.own().items()}
        return installed(self.group) | own

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return BeforeValidator(self._checked).__get_pydantic_core_schema__(source, handler)

    def _checked(self, raw: Any, info: ValidationInfo) -> Any:
        if not isinstance(raw, Mapping):
            return raw
        kind = raw.get("kind")
        if not isinstance(kind, str):
            raise problem_at(("kind",), kind, "a kind is a name", "missing" if kind is None else "kind")
        if kind in self.beside:
            return self.beside[kind].model_validate(raw, context=info.context)
        try:
            part: Any = self.find(kind)
        except UnknownKind as error:
            raise problem_at(("kind",), kind, str(error), "kind") from error
        settings = part.model_validate(raw, context=info.context)
        settings._package = self.distribution(kind)
        return settings


def installed(group: str) -> dict[str, EntryPoint]:
    """Entry points of a group, by name."""
    return {point.name: point for point in all_installed().get(group, ())}


@cache
def all_installed() -> dict[str, EntryPoints]:
    """Twinset's groups of entry points; read at once, since each look reads the metadata of every package."""
    points = entry_points()
    return {group: points.select(group=group) for group in points.groups if group.startswith("twinset.")}


def problem_at(loc: tuple[int | str, ...], value: Any, problem: str, kind: str = "wrong") -> ValidationError:
    """An error of pydantic's at a key path. kind: pydantic's word for it, such as ``missing``."""
    error = PydanticCustomError(kind, "{problem}", {"problem": problem})
    return ValidationError.from_exception_data("settings", [{"type": error, "loc": loc, "input": value}])


@cache
def marks(settings: type[BaseModel], mark: type[T]) -> dict[str, T]:
    """The marks of a type by the name of their setting; they stand anywhere within it, as in ``Location | None``."""
    return {
        name: item
        for name, field in settings.model_fields.items()
        for part in types_in(field.annotation)
        for item in (*field.metadata, *getattr(part, "__metadata__", ()))
        if isinstance(item, mark)
    }


def types_in(annotation: Any) -> list[Any]:
    """All types within a type, such as those of a union or of a tuple."""
    return [annotation, *(kind for inner in get_args(annotation) for kind in types_in(inner))]
