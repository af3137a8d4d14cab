"""Examples of WebDataset tars that others wrote, such as img2dataset's, read where they lie by an index.

The index is written once, in a folder beside OUT: place, size and caption of each image. Images are not read for it, so
that nothing vouches for their bytes but size and time of each tar.
"""

import hashlib
import json
import logging
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import groupby, islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from twinset.contracts.canonical import canonical_json
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import EXTENSIONS
from twinset.generators.annotation_files import LONGEST_LINE
from twinset.generators.captions.tables import CAPTION
from twinset.shards.storage.store import Entry, Store
from twinset.shards.storage.tar_reader import BrokenTar, member_headers
from twinset.shards.storage.whole_file import whole_file
from twinset.training.examples.columns import Gathered, Part, Side
from twinset.training.examples.contracts import DataPlace, Task

MOST_TARS = 1_000_000
MOST_BRACES = 12  # of a pattern; each may double the names
_RANGE = re.compile(r"\{(-?\d{1,18})\.\.(-?\d{1,18})")
IMAGES = (*EXTENSIONS, "jpeg")
SIDE = Side("", {"image": "image"}, {"text": "text"})
TEXTS = ("txt", "json")
#: Why a sample gives no example: it is one with …
NO_IMAGE, NO_CAPTION, EMPTY, UNREAD = "no image", "no caption", "an empty image", "a caption that cannot be read"
SEVERAL = "a key of several images or captions (it ends at the first dot of a name: replace further dots)"
READER = 2  # raised when other examples, or other pixels, are read of the same tars
COMPRESSED = (".tar.gz", ".tgz", ".tar.bz2", ".tar.xz", ".tar.zst")
_SCHEMA = pa.schema([("key", pa.string()), ("text", pa.string()), ("offset", pa.uint64()), ("size", pa.uint64())])
_LOG = logging.getLogger("twinset")


@dataclass(frozen=True, slots=True)
class Tars:
    """Tars below a store's root, and what they were when they were opened: their sizes and times."""

    store: Store
    pattern: str
    names: tuple[str, ...]
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def title(self) -> str:
        return f"tars:{self.pattern}"

    def digest(self) -> str:
        """As `Origin.digest`: of names, sizes and times of all tars, and of how they are read."""
        there = [[name, one.size, one.stamp] for name, one in self.there()]
        return hashlib.sha256(canonical_json([READER, there])).hexdigest()

    def facts(self) -> dict[str, Any]:
        shards = [{"tar": name, "bytes": one.size} for name, one in self.there()]
        return {"dataset": self.title, "subset": None, "split": None, "shards": shards, "left_out": self.left_out}

    def there(self) -> list[tuple[str, Entry]]:
        """Each tar as it lies there now. Raises `WrongUse` where one is absent."""
        found = {
            f"{folder}/{name}".lstrip("/"): entry
            for folder in {_folder(name) for name in self.names}
            for name, entry in self.store.listing(folder).items()
        }
        if absent := [name for name in self.names if name not in found]:
            raise WrongUse(
                f"{self.title}: {len(absent):,} of {len(self.names):,} tars are absent, the first is {absent[0]}; "
                "fetch them, or name those that are there"
            )
        return [(name, found[name]) for name in self.names]


def find_tars(place: DataPlace) -> Tars:
    """The tars that a pattern names: a file, a folder of tars, ``{00000..00331}``, ``{a,b}``, ``*`` and ``?``.

    Raises `WrongUse`: there is none, or one that is named is absent.
    """
    from braceexpand import braceexpand

    parts = place.pattern.split("/")
    plain = next((n for n, part in enumerate(parts) if set(part) & set("{*?")), len(parts) - 1)
    root, rest = "/".join(parts[:plain]) or ("/" if parts[0] == "" else "."), "/".join(parts[plain:])
    store = Store(root)
    ranges = [abs(int(last) - int(first)) for first, last in _RANGE.findall(rest)]
    if rest.count("{") > MOST_BRACES or max(ranges, default=0) >= MOST_TARS:
        raise WrongUse(f"tars:{place.pattern[:200]}: more than {MOST_TARS:,} tars, or {MOST_BRACES} braces; name fewer")
    try:
        names = list(islice(braceexpand(rest), MOST_TARS + 1))
    except ValueError as error:
        raise WrongUse(f"tars:{place.pattern}: not a pattern ({error})") from error
    if len(names) > MOST_TARS:
        raise WrongUse(f"tars:{place.pattern}: more than {MOST_TARS:,} tars; name fewer")
    found = [name for one in names for name in _matching(store, one)]
    if packed := [name for name in found if name.endswith(COMPRESSED)]:
        raise WrongUse(f"tars:{place.pattern}: {packed[0]} is compressed; images are read by their places: unpack it")
    if not found:
        raise WrongUse(f"tars:{place.pattern}: names no tar; write FILE.tar, FOLDER or FOLDER/{{00000..00331}}.tar")
    if repeated := [name for name, count in Counter(found).items() if count > 1]:
        raise WrongUse(f"tars:{place.pattern}: names {repeated[0]} twice; write *2 behind it to repeat all of them")
    tars = Tars(store, place.pattern, tuple(found))
    tars.there()
    return tars


def _matching(store: Store, name: str) -> list[str]:
    folder, last = _folder(name), name.rpartition("/")[2]
    if set(folder) & set("*?"):
        raise WrongUse(f"{store.root}/{name}: * and ? stand for parts of a file's name only; name folders by {{a,b}}")
    if set(last) & set("*?"):
        return [f"{folder}/{one}".lstrip("/") for one in sorted(store.listing(folder)) if fnmatchcase(one, last)]
    suffixes = (".tar", *COMPRESSED)
    if last.endswith(suffixes):
        return [name]
    return [f"{name}/{one}".lstrip("/") for one in sorted(store.listing(name)) if one.endswith(suffixes)]


def _folder(name: str) -> str:
    return name.rpartition("/")[0]


def tars_part(place: DataPlace, task: Task, split: str | None, index: Path) -> Part:
    """The samples of tars that have an image and a caption.

    Args:
        index: folder of indices; the one of these tars is written there, unless it is there.

    Raises:
        WrongUse: a tar is absent or damaged, or no sample has an image and a caption.
    """
    if task != "pairs" or split is not None:
        lacks = (
            f"split {split!r}: name the tars of it" if task == "pairs" else f"{task}: they hold images with captions"
        )
        raise WrongUse(f"tars:{place.pattern}: such tars have no {lacks}")
    tars = find_tars(place)
    as_of = tars.digest()
    path = index / f"{as_of[:32]}.parquet"
    try:
        gathered, told = _read_index(tars, path)
    except (OSError, pa.ArrowException, LookupError, ValueError, TypeError, StopIteration):
        # There is none, or it is damaged: it is no more than what the tars say.
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as unfinished:
            _write_index(tars, unfinished)
        gathered, told = _read_index(tars, path)
    left_out: dict[str, list[Any]] = told["left_out"]
    counted = ", ".join(f"{count:,} with {reason} (first {where})" for reason, (count, where) in left_out.items())
    if not any(told["rows"]):
        raise WrongUse(f"{tars.title}: no sample has an image and a caption: {counted or 'the tars are empty'}")
    if counted:
        _LOG.warning("%s: left out: %s", tars.title, counted)
    tars.left_out.update({reason: count for reason, (count, _) in left_out.items()})
    return Part(tars, gathered.columns(), (SIDE,), as_of, place.copies, local=True)


def _read_index(tars: Tars, path: Path) -> tuple[Gathered, dict[str, Any]]:
    """What an index holds, and what it says of its tars; raises any of several errors where it is not one of them."""
    gathered = Gathered(("image",), ("text",))
    with pq.ParquetFile(path) as file:
        told: dict[str, Any] = json.loads(file.metadata.metadata[b"twinset"])
        groups = (file.read_row_group(number) for number in range(file.num_row_groups))
        for (name, entry), count in zip(tars.there(), told["rows"], strict=True):
            if not count:
                continue
            rows = next(groups).cast(_SCHEMA)
            offsets, sizes = (rows[column].to_numpy() for column in ("offset", "size"))
            ends = offsets.astype(np.float64) + sizes
            if len(rows) != count or any(column.null_count for column in rows.columns) or ends.max() > entry.size:
                raise ValueError(name)
            slices = np.stack([offsets, sizes, np.zeros(count, np.uint64)], axis=1)
            keys, texts = (rows[column].combine_chunks() for column in ("key", "text"))
            gathered.add(name, keys, None, {"text": texts}, {"image": slices})
    return gathered, told


def _write_index(tars: Tars, path: Path) -> None:
    """An index: a row group a tar that has samples; how many each has, and what is left out with its first place."""
    left_out, counts = dict[str, list[Any]](), list[int]()
    with pq.ParquetWriter(path, _SCHEMA, compression="zstd") as writer:
        for name in tars.names:
            with tars.store.open(name) as stream:
                rows = _rows(stream, f"{tars.store.root}/{name}", PurePosixPath(name).stem, left_out)
            counts.append(len(rows))
            if rows:
                writer.write_table(pa.table([list(column) for column in zip(*rows, strict=True)], _SCHEMA), len(rows))
        writer.add_key_value_metadata({"twinset": json.dumps({"rows": counts, "left_out": left_out})})


Row = tuple[str, str, int, int]


def _rows(stream: BinaryIO, where: str, stem: str, left_out: dict[str, list[Any]]) -> list[Row]:
    """Key, caption, and offset and size of the image, of each sample of a tar; others are counted in ``left_out``."""
    rows: list[Row] = []
    whole = dict[str, bool]()  # by key, whether image and caption lay side by side
    try:
        for key, members in groupby(_members(stream, where), key=lambda member: member.key):
            fields = list(members)
            images, texts = _of_kind(fields, IMAGES), _of_kind(fields, TEXTS)
            if key in whole and not (whole[key] and images and texts):
                raise WrongUse(
                    f"{where}: the fields of {key} do not lie side by side, as WebDataset needs them; sort the tar: "
                    "unpack it, and pack it again with `tar --sort=name`"
                )
            whole[key] = bool(images and texts)
            caption = _caption(texts[0]) if texts else ""
            several = len(images) > 1 or len(texts) > 1
            reason = SEVERAL if several else NO_IMAGE if not images else EMPTY if not images[0].size else ""
            if reason := reason or (UNREAD if caption is None else "" if caption else NO_CAPTION):
                counted = left_out.setdefault(reason, [0, f"{where} {fields[0].name}"])
                counted[0] += max(1, len(images))
            elif caption:
                rows.append((f"{stem}/{key}", caption, images[0].offset, images[0].size))
    except BrokenTar as error:
        raise WrongUse(f"{error}; fetch this tar again, or leave it out of the pattern") from error
    return rows


class Member(NamedTuple):
    """A file in a tar. key, extension: by WebDataset's rule, "" for no extension. content: of texts."""

    name: str
    key: str
    extension: str
    offset: int
    size: int
    content: bytes


def _members(stream: BinaryIO, where: str) -> Iterator[Member]:
    from webdataset.tariterators import base_plus_ext

    for name, offset, size in member_headers(stream, where):
        if name.rpartition("/")[2].startswith("._"):  # what macOS adds to each file
            continue
        key, extension = base_plus_ext(name)
        extension = (extension or "").lower()
        stream.seek(offset)
        content = stream.read(min(size, LONGEST_LINE)) if extension.rpartition(".")[2] in TEXTS else b""
        yield Member(name, key or name, extension, offset, size, content)


def _of_kind(fields: Sequence[Member], kinds: Sequence[str]) -> list[Member]:
    """The fields of the first kind that is there; where none is, those with further dots, such as ``input.jpg``."""
    plain = ([field for field in fields if field.extension == kind] for kind in kinds)
    return next(filter(None, plain), [field for field in fields if field.extension.rpartition(".")[2] in kinds])


def _caption(text: Member) -> str | None:
    """A text, or a field of a JSON; "" where there is none, None where it cannot be read."""
    try:
        if text.extension.endswith("txt"):
            return text.content.decode("utf-8-sig").strip()
        said = json.loads(text.content)
        caption = str(next((said[name] for name in CAPTION if isinstance(said.get(name), str)), ""))
        caption.encode()  # no half of a surrogate pair
        return caption.strip()
    except (ValueError, AttributeError, RecursionError):
        return None
