"""Export of text pairs to the layouts of TROHN (Parquet) and of SugarCrepe (a JSON file a kind).

TROHN-Text:  DIR/data/train-00000-of-00001.parquet …   image_id, caption, negative_caption
SugarCrepe:  DIR/replace_obj.json …                    {"0": {"filename", "caption", "negative_caption"}, …}

TROHN's layout has no kinds; with generated images it is `shards.export.generated_pairs`. SugarCrepe names images of
COCO's val2017, and writes none.
"""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.text_pair import TEXT_PAIR
from twinset.contracts.licences.terms import TERMS
from twinset.shards.export.captioned import JsonItems
from twinset.shards.export.formats import BySplit, Format, Shard, lift_only_folder
from twinset.shards.export.generated_pairs import split_schema, write_splits
from twinset.shards.media.media_folder import COCO_DIGITS, IMAGE_SUFFIXES
from twinset.shards.rows import Row

WORDS = ("image_id", "caption", "negative_caption")


def write_trohn(shards: Iterator[Shard], folder: Path) -> None:
    """Write a Parquet file a split."""
    rows = ((shard.split, [{**row.words, **row.terms._asdict()} for row in shard.samples]) for shard in shards)
    write_splits(rows, split_schema((*WORDS, *TERMS)), folder)


def write_sugarcrepe(shards: Iterator[Shard], folder: Path) -> None:
    """Write a JSON file a kind, several splits into a folder each.

    Raises `WrongUse` for pairs of no known kind, and for those whose image is in no file that could be named.
    """
    with BySplit(lambda name: JsonItems(folder / f"{name}.json", "{}")) as files:
        for shard in shards:
            (folder / shard.split).mkdir(exist_ok=True)
            for row in shard.samples:
                kind = f"{row.words['type']}_{row.words['subtype']}"
                if not re.fullmatch("[a-z]+_[a-z]+", kind):
                    raise WrongUse(
                        f"{row.key} of {shard.subset} is of no known kind ({kind[:50]!r}), and SugarCrepe has a file a "
                        "kind; use --format trohn, or make it of negative captions that tell their kind"
                    )
                file = files[f"{shard.split}/{kind}"]
                entry = {"filename": _file_of(row, shard.subset), **{name: row.words[name] for name in WORDS[1:]}}
                file.append({**entry, **row.terms._asdict()}, str(file.length))
    lift_only_folder(folder)


def _file_of(row: Row, subset: str) -> str:
    """The name of the image's file: that of the file it was read from, else as COCO calls it."""
    if row.sources:
        return PurePosixPath(row.sources[0].path).name
    if row.images:
        raise WrongUse(
            f"{row.key} of {subset}: its image was read from no file, and SugarCrepe's files name images; use --format "
            "trohn"
        )
    name = row.words["image_id"]
    if name.isascii() and name.isdigit():
        name = name.zfill(COCO_DIGITS)
    return name if name.lower().endswith(IMAGE_SUFFIXES) else f"{name}.jpg"


TROHN_FORMAT = Format((TEXT_PAIR,), write_trohn, images=False)
SUGARCREPE_FORMAT = Format((TEXT_PAIR,), write_sugarcrepe, images=False)
