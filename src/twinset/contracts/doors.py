"""Doors: what a recipe or a command chooses by name comes from twinset or from any installed package.

A recipe names kinds, never code: recipes come from others. What a name may be is decided by what is installed here:
twinset's own parts, and entry points of one group for each door. Installed packages are trusted, recipes are not.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from importlib import import_module
from importlib.metadata import EntryPoint, EntryPoints, distributions, entry_points
from typing import Any, Generic, TypeVar, cast, get_args

from pydantic import BaseModel, BeforeValidator, GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, PydanticCustomError

from twinset.contracts.errors import WrongUse, in_words

BESIDE = ("twinset-demo", "twinset-extras")  # distributions of this project

T = TypeVar("T")


class UnknownKind(WrongUse):
    """No installed package provides a kind."""


@dataclass(frozen=True)
class Registry(Generic[T]):
    """One door: parts by name.

    what: ``source`` or ``filter``, for messages. base: the class of the parts. home: the module whose ``KINDS``, or
    what is named after a colon, maps twinset's own names to ``MODULE:NAME``, imported when a part is looked up, as an
    entry point is. group: of entry points. objects: whether parts are instances of ``base``; else they are its
    subclasses.
    """

    what: str
    base: type[Any]
    home: str
    group: str
    objects: bool = False

    def find(self, kind: str, others: Iterable[str] = ()) -> type[T]:
        """The class of a kind; raises `UnknownKind` naming those that are near, or all.

        others: kinds that can be named as well, for the message.
        """
        return cast(type[T], self._load(kind, others))

    def get(self, kind: str, others: Iterable[str] = ()) -> T:
        """The object of a name, of a door whose parts are ``objects``; raises as `find`."""
        return cast(T, self._load(kind, others))

    def kinds(self) -> list[str]:
        """All names that can be chosen on this machine."""
        return sorted(self._points())

    def own(self) -> Mapping[str, str]:
        """Twinset's own names, in their order, with the places of their parts."""
        home, _, name = self.home.partition(":")
        return cast(Mapping[str, str], getattr(import_module(home), name or "KINDS"))

    def known(self, kind: str) -> str:
        """A name as it is, for settings that hold a name alone; one that is unknown is an error of that setting."""
        try:
            self._load(kind)
        except UnknownKind as error:
            raise PydanticCustomError("kind", str(error)) from None
        return kind

    def distribution(self, kind: str) -> str:
        """Name and version of the package that brought a kind; empty for twinset's own."""
        point = self._points().get(kind)
        brought = point.dist if point is not None else None
        return f"{brought.name} {brought.version}" if brought is not None else ""

    def named(self, kind: str) -> str:
        """A kind for messages, with the package that brought it: ``source 'before-after' of before-after 0.1.0``."""
        brought = self.distribution(kind)
        return f"{self.what} {kind!r}" + (f" of {brought}" if brought else "")

    def _load(self, kind: str, others: Iterable[str] = ()) -> Any:
        points = self._points()
        if kind not in points:
            known = sorted({*points, *others})
            near = " or ".join(map(repr, difflib.get_close_matches(kind, known)))
            every = f", or name one of {', '.join(known)}" if known else ""
            remedy = f"did you mean {near}?" if near else f"install the package that provides it{every}"
            raise UnknownKind(f"there is no {self.what} {kind!r} here; {remedy}{where_others_are()}")
        packages = {one.dist.name for one in all_installed().get(self.group, ()) if one.name == kind and one.dist}
        if len(packages) > 1 and kind not in self.own():
            raise WrongUse(
                f"{self.what} {kind!r} comes with {' and with '.join(sorted(packages))}; uninstall all but one"
            )
        try:
            found = points[kind].load()
        except (Exception, SystemExit) as error:
            raise WrongUse(
                f"{self.named(kind)} cannot be imported: {in_words(error)}; correct its package (--verbose shows the "
                "traceback)"
            ) from error
        if self.objects:
            fits, expected = isinstance(found, self.base), f"an instance of {self.base.__name__}"
        else:
            fits = isinstance(found, type) and issubclass(found, self.base)
            expected = f"a subclass of {self.base.__name__}"
        if not fits:
            raise WrongUse(f"{self.named(kind)}: {found!r} is not {expected}; correct its package")
        return found

    def _points(self) -> dict[str, EntryPoint]:
        """Of all kinds; no package replaces one of twinset's own."""
        own = {kind: EntryPoint(kind, place, self.group) for kind, place in self.own().items()}
        return installed(self.group) | own


def installed(group: str) -> dict[str, EntryPoint]:
    """Entry points of a group, by name."""
    return {one.name: one for one in all_installed().get(group, ())}


@cache
def all_installed() -> dict[str, EntryPoints]:
    """Twinset's groups of entry points; read at once, since each look reads the metadata of every package."""
    found = entry_points()
    return {group: found.select(group=group) for group in found.groups if group.startswith("twinset.")}


def is_installed(package: str) -> bool:
    """Whether a distribution is installed here, of whatever version."""
    return any(distributions(name=package))


def where_others_are() -> str:
    """The end of a message about a name that is not known here; empty where all that is `BESIDE` is installed."""
    lacking = [one for one in BESIDE if not is_installed(one)]
    folders = " ".join(f"./{one.removeprefix('twinset-')}" for one in lacking)
    return f"; more comes with {' and '.join(lacking)}: pip install {folders} in twinset's checkout" if lacking else ""


@dataclass(frozen=True, slots=True, eq=False)
class OfKind:
    """Marks a setting that holds the settings of a kind of a door: ``Annotated[SerializeAsAny[BASE], OfKind(DOOR)]``.

    They are checked against the class of their ``kind``. own: kinds of this setting alone, which are no parts.
    """

    registry: Registry[Any]
    own: Mapping[str, type[Any]] = field(default_factory=dict)

    def find(self, kind: str) -> Any:
        """The class of a kind; raises as `Registry.find`."""
        return self.own[kind] if kind in self.own else self.registry.find(kind, self.own)

    def distribution(self, kind: str) -> str:
        """As `Registry.distribution`."""
        return "" if kind in self.own else self.registry.distribution(kind)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return BeforeValidator(partial(_of_kind, self)).__get_pydantic_core_schema__(source, handler)


def _of_kind(door: OfKind, raw: Any) -> Any:
    if not isinstance(raw, Mapping):
        return raw
    kind, problem = raw.get("kind"), "a kind is a name"
    if isinstance(kind, str):
        try:
            return door.find(kind).model_validate(raw)
        except UnknownKind as error:
            problem = str(error)
    unknown = PydanticCustomError("missing" if kind is None else "kind", problem)
    raise ValidationError.from_exception_data("kind", [{"type": unknown, "loc": ("kind",), "input": kind}])


@dataclass(frozen=True, slots=True)
class KeyFor:
    """Marks a setting that names the environment variable with the key of a server.

    server: the setting beside it that holds the server's URL.
    """

    server: str


@cache
def marks(settings: type[BaseModel], mark: Any) -> dict[str, Any]:
    """The marks of a type by the name of their setting; they stand anywhere within it, as in ``Location | None``."""
    return {
        name: one
        for name, field in settings.model_fields.items()
        for part in types_in(field.annotation)
        for one in (*field.metadata, *getattr(part, "__metadata__", ()))
        if isinstance(one, mark)
    }


def types_in(annotation: Any) -> list[Any]:
    """All types within a type, such as those of a union or of a tuple."""
    return [annotation, *(one for inner in get_args(annotation) for one in types_in(inner))]
