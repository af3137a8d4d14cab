"""Finding videos and images by name or id in one folder of files, of tars, or of both, without ever leaving it."""

import errno
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Protocol

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import TwinsetError
from twinset.shards.storage.path_ends import end_of, ending_in, is_file, key_of, path_of, walk
from twinset.shards.storage.tar_reader import tar_members

VIDEO_SUFFIXES = (".mp4", ".mkv", ".webm", ".avi", ".mov")
LONGEST_NAME = 4096  # characters, as Linux limits paths; others name no file

# Errors of the operating system that blame one file. Any other (a full or failing disk, a lost mount, too many open
# files) is trouble of the machine, which another try may not have: it ends the shard instead of rejecting candidates.
FILE_ERRORS = frozenset(
    {errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG}
)


class EscapesRoot(TwinsetError):
    """A path that comes from data points outside the folder that it belongs to."""


def inside(root: Path, relative: str) -> Path:
    """``root / relative``, refused when a path from data is absolute, climbs with ``..`` or holds a NUL.

    Links that the owner of the folder made are followed: only the data is not trusted.
    """
    pure = PurePosixPath(relative)
    if not relative or pure.is_absolute() or ".." in pure.parts or "\0" in relative or "\\" in relative:
        raise EscapesRoot(f"{relative!r} leaves the folder: absolute, with '..', or no path; correct what names it")
    return root / pure


class Media(Protocol):
    """Finds files by the names that annotations use: for samples, for missing files that appear later, for audits."""

    root: Path

    def size(self, name: str) -> int | None:
        """Bytes of what a name stands for now; None when it is not there."""

    def sha256(self, name: str) -> tuple[str, int] | None:
        """sha256 (hexadecimal) and size in bytes of what a name stands for now; None when it is not there."""


@dataclass(frozen=True, slots=True)
class StoredImage:
    """The bytes of an image or a video: a file, or a member of a tar.

    name: how it is recorded: relative to the folder with '/', ``TAR/MEMBER`` for a member. path: the file or the tar.
    offset, size: of its bytes in that.
    """

    name: str
    path: Path
    offset: int
    size: int

    def read(self) -> bytes:
        """Its bytes; fewer than `size` where the file was cut short."""
        with self.path.open("rb") as stream:
            stream.seek(self.offset)
            return stream.read(self.size)

    def sha256(self) -> tuple[str, int]:
        """sha256 (hexadecimal) and size of its bytes."""
        if not self.offset:  # a video may be larger than memory
            return sha256_of_file(self.path)
        content = self.read()
        return hashlib.sha256(content).hexdigest(), len(content)


class MediaFolder:
    """A folder of videos or frames, and folders below it, addressed by the names that annotations use.

    A name is that of the file at its path below the folder; otherwise of the only file whose full path, the folder's
    own path included, ends in the name. Where several do they must be copies: else which is meant cannot be told.
    ``\\`` counts as ``/``, and a suffix in small or large letters, or letters put together otherwise, as the same.
    """

    suffixes: tuple[str, ...] = VIDEO_SUFFIXES

    def __init__(self, root: Path) -> None:
        self.root = root

    def find(self, name: str) -> StoredImage | None:
        """The file that a name stands for; None when it is not there, and for an URL. Raises `EscapesRoot` for a name
        that leads out.
        """
        matches = self._matches(name)
        if len({match.size for match in matches}) > 1 or (len(matches) > 1 and len({m.sha256() for m in matches}) > 1):
            return None
        return matches[0] if matches else None

    def absent(self, name: str, problem: str) -> str:
        """Why a name stands for no file: ``problem`` where none is called so, else what it may mean, and a remedy."""
        if matches := self._matches(name):
            return f"{name} may be {matches[0].name} or {matches[-1].name}, which differ; write the folder in the name"
        last = PurePosixPath(name.replace("\\", "/")).name
        if last != name and "://" not in name and (matches := self._ending([[last]])):
            return f"{name} is not {matches[0].name}, of another folder; name the folder that holds it, or correct it"
        return problem

    def size(self, name: str) -> int | None:
        stored = self.find(name)
        return stored.size if stored is not None else None

    def sha256(self, name: str) -> tuple[str, int] | None:
        stored = self.find(name)
        return stored.sha256() if stored is not None else None

    def spellings(self, name: str) -> list[list[str]]:
        """How the file of a name or id may be called, the likelier before."""
        once = [name + suffix for suffix in VIDEO_SUFFIXES]
        twice = [file + suffix for file in once for suffix in VIDEO_SUFFIXES]  # ID.mp4.webm: youtube-dl
        return [[name], *([file] for file in once), twice]

    def _matches(self, name: str) -> list[StoredImage]:
        if "://" in name or len(name) > LONGEST_NAME:
            return []
        places = self.places(name)
        for place in places:
            for spelled in self.spellings(place):
                if matches := [stored for path in spelled if (stored := self._at(path)) is not None]:
                    return matches
        return [] if name.replace("\\", "/").startswith("/") else self._ending(self.spellings(places[0]))

    def places(self, name: str) -> list[str]:
        """Where a name may lie below the folder: as it stands, or behind the last folders of the folder's own path."""
        path = PurePosixPath(name.replace("\\", "/"))
        parts = path.parts
        behind = [
            parts[depth:] for depth in range(1, len(parts)) if any(own[-depth:] == parts[:depth] for own in self._own)
        ]
        places = ["/".join(rest) for rest in behind]
        if name and not (path.is_absolute() and behind):
            places.insert(0, str(path))
        for place in places or [""]:
            inside(self.root, place)
        return places

    @cached_property
    def _own(self) -> tuple[tuple[str, ...], ...]:
        return Path(os.path.abspath(self.root)).parts, Path(os.path.realpath(self.root)).parts

    def _at(self, path: str) -> StoredImage | None:
        """The file at a path below the folder."""
        file = inside(self.root, path)
        return StoredImage(path, file, 0, file.stat().st_size) if is_file(file) else None

    def _ending(self, spellings: list[list[str]]) -> list[StoredImage]:
        """The files whose path ends in one of the first spellings that any has."""
        return next(filter(None, map(self._all_ending, spellings)), [])

    def _all_ending(self, spelled: list[str]) -> list[StoredImage]:
        # Spellings that differ in the case of the suffix have the same places.
        places = dict.fromkeys(at for name in spelled for at in ending_in(name, self._keys))
        paths = [path_of(self._keys[at]) for at in places]
        return [stored for path in paths if (stored := self._at(path)) is not None]

    @cached_property
    def _keys(self) -> list[bytes]:
        # Walked once, and only when a direct look-up failed.
        files = (str(PurePosixPath(folder, file)) for folder, file in walk(self.root))
        return sorted(key_of(path) for path in files if path.lower().endswith(self.suffixes))


IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp")
COCO_DIGITS = 12  # COCO's file of image 139 is 000000000139.jpg, and was COCO_val2014_000000000139.jpg
COCO_PREFIXES = ("COCO_val2014_", "COCO_train2014_")
SPELLED_SUFFIXES = (*IMAGE_SUFFIXES, *map(str.upper, IMAGE_SUFFIXES))
TAR = ".tar"


class ImageFolder(MediaFolder):
    """A folder of images, addressed by the names or ids that annotations and captions use.

    It may hold files, in folders of any depth, and tars such as img2dataset's shards, which are read where they lie: a
    member's path is ``TAR/MEMBER``.
    """

    suffixes = IMAGE_SUFFIXES

    def spellings(self, name: str) -> list[list[str]]:
        """As it stands; with a suffix, and as COCO numbers its files, where it has none; as COCO called the same image
        in 2014 or 2017.
        """
        folder, slash, base = name.rpartition("/")
        stem = base.removesuffix(".jpg")
        coco = next((before for before in COCO_PREFIXES if stem.startswith(before)), "")
        number, within = stem.removeprefix(coco), folder + slash
        spelled = [[name]]
        if not base.lower().endswith(IMAGE_SUFFIXES):
            spelled += [[name + suffix, name + suffix.upper()] for suffix in IMAGE_SUFFIXES]
            if re.fullmatch(r"[1-9]\d{,11}", number):
                number = number.zfill(COCO_DIGITS)
                spelled += [[f"{within}{number}.jpg"], [f"{within}{number}{suffix}" for suffix in SPELLED_SUFFIXES]]
        if not re.fullmatch(r"\d{12}", number):
            return spelled
        if not coco:
            return [*spelled, [f"{within}{before}{number}.jpg" for before in COCO_PREFIXES]]
        spelled.append([f"{within}{number}.jpg"])
        if folder.rpartition("/")[2] == coco[5:-1]:  # the file's name says it too, and no other file has the number
            spelled += [[base], [f"{number}.jpg"]]
        return spelled

    def _at(self, path: str) -> StoredImage | None:
        if (stored := super()._at(path)) is not None:
            return stored
        splits = (split for split in _through_tars(path) if is_file(self.root / split[0]))
        return next((stored for split in splits for stored in self._in_tar(split[0], [split])), None)

    def _all_ending(self, spelled: list[str]) -> list[StoredImage]:
        splits = [split for name in spelled for split in _through_tars(name)]
        members = [stored for tar in self._tars for stored in self._in_tar(tar, splits)]
        return super()._all_ending(spelled) + members

    def _in_tar(self, tar: str, wanted: list[tuple[str, str]]) -> Iterator[StoredImage]:
        """Members of a tar whose path ends in a name. wanted: the name's part that is of the tar, and the rest."""
        path = inside(self.root, tar)
        try:
            members = tar_members(path, IMAGE_SUFFIXES)
        except OSError as error:
            if error.errno not in FILE_ERRORS:
                raise
            return
        for of_tar, name in wanted:
            if end_of(tar).startswith(end_of(of_tar)):
                for member, offset, size in members.ending_in(name):
                    if not of_tar or end_of(member) == end_of(name):
                        yield StoredImage(f"{tar}/{member}", path, offset, size)

    @cached_property
    def _tars(self) -> list[str]:
        tars = [str(PurePosixPath(folder, file)) for folder, file in walk(self.root) if file.endswith(TAR)]
        return [tar for tar in tars if is_file(self.root / tar)]


def _through_tars(name: str) -> list[tuple[str, str]]:
    """The ways to split a name into the path of a tar, which may be empty, and that of a member."""
    parts = name.split("/")
    depths = [depth for depth in range(len(parts)) if depth == 0 or parts[depth - 1].endswith(TAR)]
    return [("/".join(parts[:depth]), "/".join(parts[depth:])) for depth in depths]
