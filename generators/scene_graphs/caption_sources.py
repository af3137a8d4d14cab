"""Which kind of captions a path holds, and the digest of what is read of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Literal

from generators.scene_graphs.caption_files import (
    FLICKR_ID,
    read_coco,
    read_flickr_tokens,
    read_json_lines,
    read_parquet_files,
    read_tsv,
)
from generators.scene_graphs.captions import Read, lines
from generators.scene_graphs.img2dataset_shards import read_img2dataset, shard_stems
from manifests.canonical import digest, sha256_of_file
from manifests.errors import WrongUse

Kind = Literal["tsv", "flickr-tokens", "coco", "json-lines", "parquet", "img2dataset"]
SNIFFED = 50  # lines that tell a token file from a TSV

_KINDS = (
    "captions are a TSV of caption and url, a Flickr token file, COCO's .json, .jsonl, .parquet, a folder of Parquet "
    "files, or one that img2dataset wrote with tars"
)


@dataclass(frozen=True, slots=True)
class CaptionSource:
    """Captions to read. files: what is read whole and hashed; sized: tars, of which only the names are read."""

    path: Path
    kind: Kind
    files: tuple[Path, ...]
    sized: tuple[Path, ...]
    _read: Callable[[], Iterator[Read]]

    def read(self) -> Iterator[Read]:
        """Captions and what is left out, in the order of the files; memory does not grow with their number."""
        return self._read()

    def digest(self) -> str:
        """Digest of what is read: sha256 of files, names and sizes of tars."""
        hashed = [[path.name, *sha256_of_file(path)] for path in self.files]
        return digest([self.kind, hashed, [[path.name, path.stat().st_size] for path in self.sized]])


def caption_source(path: Path) -> CaptionSource:
    """The captions at a path, by its suffix and, for text, its first lines; raises `WrongUse` when there are none."""
    if path.is_dir():
        tables = tuple(file for file in sorted(path.glob("*.parquet")) if file.is_file())  # no pipe, which never ends
        if shard_stems(path):
            tars = tuple(file for file in sorted(path.glob("*.tar")) if file.is_file())
            return CaptionSource(path, "img2dataset", tables, tars, partial(read_img2dataset, path))
        if tables:
            return CaptionSource(path, "parquet", tables, (), partial(read_parquet_files, tables))
        raise WrongUse(f"{path}: a folder without *.parquet and *.tar; {_KINDS}")
    if not path.is_file():
        raise WrongUse(f"{path}: no such file; name the captions: {_KINDS}")
    suffix = Path(path.name.removesuffix(".gz")).suffix.lower()
    if suffix == ".parquet":
        return CaptionSource(path, "parquet", (path,), (), partial(read_parquet_files, (path,)))
    if suffix == ".json":
        return CaptionSource(path, "coco", (path,), (), partial(read_coco, path))
    if suffix in (".jsonl", ".ndjson"):
        return CaptionSource(path, "json-lines", (path,), (), partial(read_json_lines, path))
    if suffix in (".tsv", ".txt", ".token"):
        if _holds_tokens(path):
            return CaptionSource(path, "flickr-tokens", (path,), (), partial(read_flickr_tokens, path))
        return CaptionSource(path, "tsv", (path,), (), partial(read_tsv, path))
    raise WrongUse(f"{path}: captions of an unknown kind ({suffix or 'no suffix'}); {_KINDS}")


def _holds_tokens(path: Path) -> bool:
    first = [line for _, line in islice(lines(path), SNIFFED) if isinstance(line, str)]
    return sum(bool(FLICKR_ID.fullmatch(line.partition("\t")[0])) for line in first) * 2 > len(first)
