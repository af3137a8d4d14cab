"""Export of text pairs to the layouts of TROHN (Parquet) and of SugarCrepe (a JSON file a kind).

TROHN-Text:  DIR/data/train-00000-of-00001.parquet …   image_id, caption, negative_caption
SugarCrepe:  DIR/replace_obj.json …                    {"0": {"filename", "caption", "negative_caption"}, …}

TROHN's layout has no kinds; with generated images it is `shards.export.generated_pairs`. SugarCrepe names images of
COCO's val2017, and writes none.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.text_pair import TEXT_PAIR
from twinset.contracts.licences.terms import TERMS
from twinset.shards.export.formats import Format
from twinset.shards.export.generated_pairs import split_schema, write_splits
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.media.media_folder import COCO_DIGITS, IMAGE_SUFFIXES
from twinset.shards.storage.store import Store
from twinset.shards.storage.whole_file import as_json

WORDS = ("image_id", "caption", "negative_caption")

Row = Mapping[str, Any]


def export_trohn(store: Store, subsets: Sequence[str], folder: Path) -> int:
    """Write a Parquet file a split into ``folder``; returns the number of pairs."""

    def tables() -> Iterator[tuple[str, pa.Table]]:
        schema = split_schema((*WORDS, *TERMS))
        for subset in subsets:
            for batch in FinishedStage(store, subset).batches(("split", *WORDS, *TERMS)):
                for split in sorted(pc.unique(batch["split"]).to_pylist()):
                    rows = (
                        pa.Table.from_batches([batch]).filter(pc.equal(batch["split"], split)).select([*WORDS, *TERMS])
                    )
                    yield split, rows.cast(schema)

    return write_splits(tables(), folder)


def export_sugarcrepe(store: Store, subsets: Sequence[str], folder: Path) -> int:
    """Write a JSON file a kind into ``folder``, below a folder a split where there are several; returns the number.

    Raises `WrongUse` for pairs of no known kind, and for those whose image is in no file that could be named.
    """
    found = [FinishedStage(store, subset) for subset in subsets]
    splits = {row["split"] for one in found for row in _rows(one, ("split",))}
    counts: dict[Path, int] = {}
    with ExitStack() as files:
        streams: dict[Path, TextIO] = {}
        for one in found:
            for row in _rows(one, ("key", "split", "type", "subtype", "image_sha256", "sources", *WORDS, *TERMS)):
                kind = f"{row['type']}_{row['subtype']}"
                if not re.fullmatch("[a-z]+_[a-z]+", kind):
                    raise WrongUse(
                        f"{row['key']} of {one.where} is of no known kind ({kind[:50]!r}), and SugarCrepe has a file a "
                        "kind; use --format trohn, or make it of negative captions that tell their kind"
                    )
                below = folder / row["split"] if len(splits) > 1 else folder
                path = below / f"{kind}.json"
                if path not in streams:
                    below.mkdir(exist_ok=True)
                    streams[path] = files.enter_context(path.open("w", encoding="utf-8"))
                number = counts.get(path, 0)
                entry = {"filename": _file_of(row, one.where), **{name: row[name] for name in (*WORDS[1:], *TERMS)}}
                streams[path].write(f"{',' if number else '{'}\n{as_json(str(number))}: {as_json(entry)}")
                counts[path] = number + 1
        for stream in streams.values():
            stream.write("\n}\n")
    return sum(counts.values())


def _file_of(row: Row, where: str) -> str:
    """The name of the image's file: that of the file it was read from, else as COCO calls it."""
    if row["sources"]:
        return PurePosixPath(row["sources"][0]["path"]).name
    if row["image_sha256"]:
        raise WrongUse(
            f"{row['key']} of {where}: its image was read from no file, and SugarCrepe's files name images; use "
            "--format trohn"
        )
    name: str = row["image_id"]
    if name.isascii() and name.isdigit():
        name = name.zfill(COCO_DIGITS)
    return name if name.lower().endswith(IMAGE_SUFFIXES) else f"{name}.jpg"


def _rows(subset: FinishedStage, columns: Sequence[str]) -> Iterator[Row]:
    for batch in subset.batches(columns):
        yield from batch.to_pylist()


TROHN_FORMAT = Format(TEXT_PAIR, export_trohn)
SUGARCREPE_FORMAT = Format(TEXT_PAIR, export_sugarcrepe)
