"""Examples of WebDataset tars that others wrote, such as img2dataset's, read where they lie by an index.

The index is written once, in a folder beside OUT: place, size and caption of each image. Images are not read for it, so
that nothing vouches for their bytes but size and time of each tar.
"""

import hashlib
import json
import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import EXTENSIONS
from twinset.generators.annotation_files import LONGEST_LINE
from twinset.generators.captions.tables import CAPTION
from twinset.shards.plan import read_parquet
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar, member_headers
from twinset.shards.storage.whole_file import whole_file
from twinset.training.examples.contracts import DataPlace, Task
from twinset.training.examples.table import IMAGE, Dataset, image_column

IMAGES = (*EXTENSIONS, "jpeg")
TEXTS = ("txt", "json")
#: Why a sample, whose fields must lie side by side, gives no example: it is one with …
NO_IMAGE, NO_CAPTION = "no image beside the caption", "no caption beside the image"
LINK = "a link, or a file with holes: pack it as a file"
EMPTY, UNREAD = "an empty image", "a caption that cannot be read"
SEVERAL = "a key of several images or captions (it ends at the first dot of a name: replace further dots)"
NAMELESS = "a name without a key, which WebDataset skips"
TAR = re.compile(r"\.(tar|tgz|tar\.\w*z\w*)$", re.IGNORECASE)  # a name's end, also of one that is compressed
READER = 3  # raised when other examples, or other pixels, are read of the same tars
_SCHEMA = pa.schema([("key", pa.string()), ("image", IMAGE), ("text", pa.string())])
_LOG = logging.getLogger("twinset")


@dataclass(frozen=True, slots=True)
class Tars:
    """Tars below a store's root, and what they were when they were opened: their sizes and times.

    left_out: number of samples that give no example, by reason.
    """

    store: Store
    pattern: str
    names: tuple[str, ...]
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"tars:{self.pattern}"

    def digest(self) -> str:
        """As `Origin.digest`: of names, sizes and times of all tars, and of how they are read."""
        there = [[name, status.st_size, status.st_mtime_ns] for name, status in self.there()]
        return hashlib.sha256(canonical_json([READER, there])).hexdigest()

    def facts(self) -> dict[str, Any]:
        shards = [{"tar": name, "bytes": status.st_size} for name, status in self.there()]
        return {"dataset": self.title, "subset": None, "split": None, "shards": shards, "left_out": self.left_out}

    def there(self) -> Iterator[tuple[str, os.stat_result]]:
        """Each tar as it lies there now; `FileNotFoundError` where one is absent."""
        return ((name, Path(self.store.root, name).stat()) for name in self.names)


def find_tars(place: DataPlace) -> Tars:
    """The tars that a pattern names: a file, a folder of tars, ``{00000..00331}``, ``{a,b}``, ``*`` and ``?``. Raises
    `WrongUse`: there is none, or one that is named is absent.
    """
    from braceexpand import braceexpand

    title, paths = f"tars:{place.pattern}", list[Path]()
    try:
        for name in braceexpand(place.pattern):
            in_folder = (path for path in sorted(Path(name).glob("*")) if TAR.search(path.name))
            paths += in_folder if Path(name).is_dir() else map(Path, sorted(glob(name)) or [name])
    except ValueError as error:
        raise WrongUse(f"{title}: not a pattern ({error})") from error
    if not paths:
        raise WrongUse(f"{title}: names no tar; write FILE.tar, FOLDER or FOLDER/{{00000..00331}}.tar")
    if absent := [path for path in paths if not path.is_file()]:
        named = f"{len(absent):,} of {len(paths):,} tars are absent, the first is {absent[0]}"
        raise WrongUse(f"{title}: {named}; fetch them, or name those that are there")
    if packed := [path for path in paths if path.suffix.lower() != ".tar"]:
        raise WrongUse(f"{title}: {packed[0]} is compressed; images are read by their places: unpack it to FILE.tar")
    root = os.path.commonpath([path.absolute().parent for path in paths])
    return Tars(Store(root), place.pattern, tuple(os.path.relpath(path, root) for path in paths))


def tars_dataset(place: DataPlace, task: Task, split: str | None, index: Path) -> Dataset:
    """The samples of tars that have an image and a caption. Raises `WrongUse`: a tar is absent or damaged, or none has.

    index: folder of indices; the one of these tars is written there, unless it is there.
    """
    if task != "pairs" or split is not None:
        lacks = f"{task}: they hold images with captions" if split is None else f"split {split!r}: name the tars of it"
        raise WrongUse(f"tars:{place.pattern}: such tars have no {lacks}")
    tars = find_tars(place)
    digest = tars.digest()
    there = [tars.store.root, digest]  # tars of two folders may have the same sizes and times
    table = _index(tars, index / f"{hashlib.sha256(canonical_json(there)).hexdigest()[:32]}.parquet")
    left_out: dict[str, tuple[int, str]] = json.loads(table.schema.metadata[b"left_out"])
    counted = ", ".join(f"{count:,} with {reason} (first {where})" for reason, (count, where) in left_out.items())
    if not len(table):
        raise WrongUse(
            f"{tars.title}: no sample has an image and a caption: {counted or 'the tars are empty'}. WebDataset needs "
            "the fields of a sample side by side; pack tars where they are not with `tar --sort=name`"
        )
    if counted:
        _LOG.warning("%s: left out: %s", tars.title, counted)
    tars.left_out.update({reason: count for reason, (count, _) in left_out.items()})
    groups = pc.binary_join_element_wise(tars.store.root, pc.struct_field(table["image"], "tar"), "/")
    return Dataset(tars, table.add_column(1, "group", groups), digest)


def _index(tars: Tars, path: Path) -> pa.Table:
    """The examples of some tars, and in the metadata of the schema what is left out: read from a file, which is written
    where there is none, or one that is damaged.
    """
    try:
        with open(path, "rb") as stream:
            table = read_parquet(stream)
        if table.schema.equals(_SCHEMA) and b"left_out" in (table.schema.metadata or {}):
            return table
    except (OSError, pa.ArrowException):
        pass
    left_out = dict[str, tuple[int, str]]()
    table = pa.concat_tables([_examples(tars, name, left_out) for name in tars.names])
    table = table.replace_schema_metadata({"left_out": json.dumps(left_out)})
    with whole_file(path) as unfinished:
        pq.write_table(table, unfinished, compression="zstd")
    return table


class Member(NamedTuple):
    """A file in a tar. content: of texts."""

    name: str
    offset: int
    size: int
    content: bytes


def _examples(tars: Tars, tar: str, left_out: dict[str, tuple[int, str]]) -> pa.Table:
    """Those of a tar, whose samples webdataset tells apart; what gives none is counted in ``left_out``, with the place
    of the first.
    """
    from webdataset.tariterators import base_plus_ext, group_by_keys

    where, stem = f"{tars.store.root}/{tar}", PurePosixPath(tar).stem
    rows = list[tuple[str, str, Member]]()

    def leave_out(reason: str, name: str, samples: int = 1) -> None:
        count, first = left_out.get(reason, (0, f"{tar} {name}"))
        left_out[reason] = count + samples, first

    def files(stream: BinaryIO) -> Iterator[dict[str, Any]]:
        for name, offset, size in member_headers(stream, where):
            if base_plus_ext(name)[0] is None and not name.rpartition("/")[2].startswith("._"):  # which macOS adds
                leave_out(NAMELESS, name)
            stream.seek(offset)
            content = stream.read(min(size, LONGEST_LINE)) if name.lower().endswith(TEXTS) else b""
            yield {"fname": name, "data": Member(name, offset, size, content), "__url__": where}

    try:
        with tars.store.open(tar) as stream:
            for sample in group_by_keys(files(stream)):
                fields = {name: member for name, member in sample.items() if not name.startswith("__")}
                images, texts = _of_kind(fields, IMAGES), _of_kind(fields, TEXTS)
                caption, problem = _read(images, texts)
                if problem:
                    leave_out(problem, next(iter(fields.values())).name, max(1, len(images)))
                else:
                    rows.append((f"{stem}/{sample['__key__']}", caption, images[0]))
    except BrokenTar as error:
        raise WrongUse(f"{error}; fetch this tar again, or leave it out of the pattern") from error
    except ValueError as error:
        raise WrongUse(f"{where}: {error.args[0]}; remove one of them") from error
    keys, captions = [key for key, _, _ in rows], [caption for _, caption, _ in rows]
    offsets, sizes = [image.offset for _, _, image in rows], [image.size for _, _, image in rows]
    places = image_column([tar] * len(rows), offsets, sizes, [""] * len(rows))
    return pa.table([keys, places, captions], _SCHEMA)


def _of_kind(fields: Mapping[str, Member], kinds: Sequence[str]) -> list[Member]:
    """The fields of the first kind that is there; where none is, those with further dots, such as ``input.jpg``."""
    plain = ([fields[kind]] for kind in kinds if kind in fields)
    return next(plain, [member for name, member in fields.items() if name.rpartition(".")[2] in kinds])


def _read(images: Sequence[Member], texts: Sequence[Member]) -> tuple[str, str]:
    """The caption of a sample, and why it gives no example: one of them is empty."""
    if len(images) > 1 or len(texts) > 1:
        return "", SEVERAL
    if not all(member.offset for member in (*images, *texts)):
        return "", LINK
    if not images:
        return "", NO_IMAGE
    if not images[0].size:
        return "", EMPTY
    try:
        caption = _caption(texts[0]) if texts else ""
    except (ValueError, AttributeError, RecursionError):
        return "", UNREAD
    return caption, "" if caption else NO_CAPTION


def _caption(text: Member) -> str:
    """A text, or a field of a JSON; "" where there is none."""
    if text.name.lower().endswith("txt"):
        return text.content.decode("utf-8-sig").strip()
    record = json.loads(text.content)
    caption = next((record[name] for name in CAPTION if isinstance(record.get(name), str)), "")
    caption.encode()  # no half of a surrogate pair
    return str(caption).strip()
