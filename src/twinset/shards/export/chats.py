"""Export to chats about images: as LLaVA is trained on, and as preferences that TRL's DPOTrainer reads.

DIR/SPLIT.json  images/                         LLaVA: data_path and image_folder (DIR)
DIR/data/SPLIT-00000-of-00001.parquet           TRL: load_dataset("parquet", data_files=…): images, prompt, chosen,
                                                rejected (dataset_formats, "Vision datasets")
"""

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from twinset.contracts.kinds.image_text import IMAGE_TEXT
from twinset.contracts.kinds.pair import PAIR
from twinset.contracts.kinds.text_pair import TEXT_PAIR
from twinset.shards.export.captioned import Row, caption_rows, image_file
from twinset.shards.export.formats import Format
from twinset.shards.export.generated_pairs import write_splits
from twinset.shards.read import pictured_tars
from twinset.shards.storage.store import Store
from twinset.shards.storage.whole_file import JsonArray

CHATS, PREFERENCES = (PAIR, TEXT_PAIR, IMAGE_TEXT), (PAIR, TEXT_PAIR)
DESCRIBE = "Describe the image in one sentence."
CHOOSE = "Which caption fits the image?\nA. {}\nB. {}\nAnswer with the letter of the caption."
IMAGE_TOKEN = "<image>"
TOGETHER = 500  # rows, each with its image, that memory holds at a time


def export_llava(store: Store, subsets: Sequence[str], folder: Path) -> int:
    """Write ``SPLIT.json`` and ``images/`` into ``folder``; returns the number of samples.

    Each is a list of ``{id, image, conversations}``. An image with captions is described, one chat a caption. Of pairs
    and text pairs it is asked which of two captions fits, once in each order; which comes first depends on the key.
    """
    count = 0
    with ExitStack() as files:
        arrays = dict[str, JsonArray]()
        for subset in subsets:
            for tar, split, kept in pictured_tars(store, subset, "--format llava"):
                if split not in arrays:
                    arrays[split] = files.enter_context(JsonArray(folder / f"{split}.json"))
                for row in caption_rows(store, tar, CHATS, "--format llava"):
                    image = image_file(row, folder)
                    for name, asked, answer in _chats(row):
                        turns = (("human", f"{IMAGE_TOKEN}\n{asked}"), ("gpt", answer))
                        said = [{"from": who, "value": value} for who, value in turns]
                        arrays[split].append({"id": name, "image": image, "conversations": said, **row.terms.columns})
                count += kept
    return count


def _chats(row: Row) -> Iterator[tuple[str, str, str]]:
    """Id, question and answer of each chat about a row."""
    if not row.wrong:
        yield row.key, DESCRIBE, _plain(row.caption)
    for number, wrong in enumerate(row.wrong):
        chats = [
            (f"{row.key}-{number}-{letter}", CHOOSE.format(*map(_plain, captions)), letter)
            for letter, captions in (("A", (row.caption, wrong)), ("B", (wrong, row.caption)))
        ]
        first = hashlib.sha256(f"{row.key}-{number}".encode()).digest()[0] % 2
        yield from chats[::-1] if first else chats


def _plain(caption: str) -> str:
    """A caption without LLaVA's token of an image, which would ask for another image."""
    return caption.replace(IMAGE_TOKEN, "< image >")


_TEXT = {"dtype": "string", "_type": "Value"}
_MESSAGES = [{"role": _TEXT, "content": [{"type": _TEXT, "text": _TEXT}]}]
_FEATURES = {"images": [{"_type": "Image"}], **dict.fromkeys(("prompt", "chosen", "rejected"), _MESSAGES)}
_SAID = pa.list_(
    pa.struct({"role": pa.string(), "content": pa.list_(pa.struct({"type": pa.string(), "text": pa.string()}))})
)
_SCHEMA = pa.schema(
    {
        "images": pa.list_(pa.struct({"bytes": pa.binary(), "path": pa.string()})),
        **dict.fromkeys(("prompt", "chosen", "rejected"), _SAID),
    },
    {"huggingface": json.dumps({"info": {"features": _FEATURES}})},
)


def export_preferences(store: Store, subsets: Sequence[str], folder: Path) -> int:
    """Write a Parquet file a split with the images inside; returns the number of samples.

    A row is an image, the request to describe it, its caption as ``chosen``, and as ``rejected`` the other caption of
    the pair or a negative caption.
    """
    count = 0

    def tables() -> Iterator[tuple[str, pa.Table]]:
        nonlocal count
        for subset in subsets:
            for tar, split, kept in pictured_tars(store, subset, "--format preferences"):
                rows = caption_rows(store, tar, PREFERENCES, "--format preferences")
                found = (one for row in rows for one in _preferences(row))
                while some := list(islice(found, TOGETHER)):
                    yield split, pa.Table.from_pylist(some, _SCHEMA)
                count += kept

    write_splits(tables(), folder)
    return count


def _preferences(row: Row) -> Iterator[dict[str, Any]]:
    prompt = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": DESCRIBE}]}]
    for wrong in row.wrong:
        yield {
            "images": [{"bytes": row.image, "path": f"{row.key}.{row.extension}"}],
            "prompt": prompt,
            "chosen": _answer(row.caption),
            "rejected": _answer(wrong),
        }


def _answer(text: str) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": [{"type": "text", "text": text}]}]


LLAVA_FORMAT = Format(CHATS, export_llava)
PREFERENCES_FORMAT = Format(PREFERENCES, export_preferences)
