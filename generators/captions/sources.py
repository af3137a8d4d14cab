"""Which kind of captions each path holds, what is read of them one after the other, and the digest of it."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, islice
from pathlib import Path

from twinset.contracts.canonical import digest, sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.generators.annotation_files import lines
from twinset.generators.captions.folders import read_img2dataset, read_sidecars, read_webdataset
from twinset.generators.captions.tables import (
    CAPTION,
    CAPTION_REASONS,
    FLICKR_ID,
    IMAGE_ID,
    Caption,
    Read,
    conceptual_captions,
    five_lines,
    flickr_tokens,
    has_header,
    read_json_captions,
    read_lines,
    read_parquet_folder,
    read_rows,
)
from twinset.shards.storage.path_ends import walk

#: Kind of a file by its suffix, without that of compression. Digests of stages have this word, "coco" for any JSON.
_KINDS = {
    **{".parquet": "parquet", ".json": "coco", ".csv": "csv"},
    **dict.fromkeys((".jsonl", ".ndjson"), "json-lines"),
    **dict.fromkeys((".tsv", ".txt", ".token"), "tsv"),
}
FIVE_LINES = "_caps.txt"  # end of the names of SCAN's files
SNIFFED = 50  # lines that tell a token file from a TSV

_FIELDS = f"{' or '.join(CAPTION)}, and {' or '.join(IMAGE_ID)}"
_FORMS = (
    "captions are a TSV of caption and url, a table with names of columns, a Flickr token file, SCAN's _caps.txt, a "
    ".json of COCO, Karpathy, Visual Genome or SBU, .jsonl, .parquet, a folder of Parquet files, of tars, or of images "
    "with texts beside them"
)


@dataclass(frozen=True, slots=True)
class CaptionSource:
    """One file or folder of captions.

    files: what is read whole and hashed; sized: tars, of which only the names are read. read: gives captions and what
    is left out, in the order of the files; memory does not grow with their number.
    """

    path: Path
    kind: str
    files: tuple[Path, ...]
    sized: tuple[Path, ...]
    read: Callable[[], Iterator[Read]]

    @property
    def name(self) -> str:
        """The file's or folder's name as text that can be written, also where the path ends with ``.`` or ``..``."""
        return os.path.basename(os.path.abspath(self.path)).encode("utf-8", "replace").decode()

    @property
    def stem(self) -> str:
        """The file's name without the suffixes of its kind and of compression, or the folder's name."""
        return self.name if self.path.is_dir() else Path(self.name.removesuffix(".gz")).stem

    def digest(self) -> str:
        """Digest of what is read: sha256 of files, names and sizes of tars."""
        hashed = [[path.name, *sha256_of_file(path)] for path in self.files]
        return digest([self.kind, hashed, [[path.name, path.stat().st_size] for path in self.sized]])


class CaptionSources:
    """Captions of one or more files or folders, read one after the other.

    Places begin with the name of the file or folder. Of several, the id of each caption begins with the stem of its
    source (``captions_val2017/179765``); ids of images stay as they are, so that captions of one photo in several files
    belong together.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        """Raises `WrongUse` for a path that holds no captions, and for two that cannot be told apart."""
        self.each = tuple(caption_source(path) for path in paths)
        for one, other in combinations(self.each, 2):
            if one.stem == other.stem:
                raise WrongUse(
                    f"{one.path} and {other.path}: both are called {one.stem!r}, with which the ids of their captions "
                    "would begin; name each file once, or rename one"
                )
            if shared := sorted({tar.name for tar in one.sized} & {tar.name for tar in other.sized}):
                raise WrongUse(
                    f"{one.path} and {other.path}: both have {shared[0]}, so that one key of img2dataset stands for an "
                    "image of each; parse each into a folder of its own"
                )

    def read(self) -> Iterator[Read]:
        """Captions and what is left out, in order. Raises `WrongUse` when nothing of a source can be read."""
        for source in self.each:
            name = source.name  # asked for once: it looks at the current folder
            stem = f"{source.stem}/" if len(self.each) > 1 else ""
            captions, left_out, first = 0, 0, ""
            for read in source.read():
                place = f"{name} {read.place}".encode("utf-8", "replace").decode()
                if isinstance(read, Caption):
                    captions += 1
                    yield replace(read, caption_id=stem + read.caption_id, place=place)
                else:
                    left_out += 1
                    first = first or f", first {read.place}: {read.reason}, {CAPTION_REASONS[read.reason]}"
                    yield replace(read, place=place)
            if not captions:
                kind = "json" if source.kind == "coco" else source.kind
                raise WrongUse(
                    f"{source.path}: no caption in it can be read as {kind} ({left_out} lines or rows left out"
                    f"{first}). Is it another kind of file, or cut off? Fields of records are called {_FIELDS}"
                )

    def digest(self) -> str:
        """Digest of what is read, and of the stems where they are part of it."""
        if len(self.each) == 1:
            return self.each[0].digest()
        return digest([[source.stem, source.digest()] for source in self.each])


def caption_source(path: Path) -> CaptionSource:
    """The captions at a path, by its suffix and, for text, its first lines; raises `WrongUse` when there are none."""
    if path.is_dir():
        return _folder(path)
    if not path.is_file():
        raise WrongUse(f"{path}: no such file; name the captions: {_FORMS}")
    name = path.name.removesuffix(".gz")
    suffix = Path(name).suffix.lower()
    if (kind := _KINDS.get(suffix, "")) == "":
        raise WrongUse(f"{path}: captions of an unknown kind ({suffix or 'no suffix'}); {_FORMS}")
    reader: Callable[[Path], Iterator[Read]] = read_json_captions if kind == "coco" else read_rows
    if name.endswith(FIVE_LINES):
        kind, reader = "five-lines", partial(read_lines, five_lines)
    elif kind == "tsv":
        first = [line for _, line in islice(lines(path), SNIFFED) if isinstance(line, str)]
        if sum(bool(FLICKR_ID.fullmatch(line.partition("\t")[0])) for line in first) * 2 > len(first):
            kind, reader = "flickr-tokens", partial(read_lines, flickr_tokens)
        elif not first or not has_header(first[0]):
            reader = partial(read_lines, conceptual_captions)
    return CaptionSource(path, kind, (path,), (), partial(reader, path))


def _folder(path: Path) -> CaptionSource:
    tables, tars = (
        tuple(file for file in sorted(path.glob(pattern)) if file.is_file())  # no pipe, which never ends
        for pattern in ("*.parquet", "*.tar")
    )
    if tables and any(path.glob("*.tar")):
        return CaptionSource(path, "img2dataset", tables, tars, partial(read_img2dataset, path))
    if tars:
        return CaptionSource(path, "webdataset", tars, (), partial(read_webdataset, *tars))
    if tables:
        return CaptionSource(path, "parquet", tables, (), partial(read_parquet_folder, *tables))
    texts = sorted(path / folder / file for folder, file in walk(path) if file.lower().endswith(".txt"))
    if texts := [file for file in texts if file.is_file()]:
        return CaptionSource(path, "texts", tuple(texts), (), partial(read_sidecars, path))
    raise WrongUse(f"{path}: a folder without *.parquet, *.tar and *.txt; {_FORMS}")
