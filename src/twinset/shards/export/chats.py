"""Export to chats about images, as LLaVA is trained on.

DIR/SPLIT.json  images/                         data_path, and DIR as image_folder
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

from twinset.contracts.kinds.image_text import IMAGE_TEXT
from twinset.contracts.kinds.pair import PAIR
from twinset.contracts.kinds.text_pair import TEXT_PAIR
from twinset.shards.export.captioned import JsonItems, Row, caption_rows, write_image
from twinset.shards.export.formats import BySplit, Format, Shard

DESCRIBE = "Describe the image in one sentence."
CHOOSE = "Which caption fits the image?\nA. {}\nB. {}\nAnswer with the letter of the caption."
IMAGE_TOKEN = "<image>"


def write_llava(shards: Iterator[Shard], folder: Path) -> None:
    """Write ``SPLIT.json`` and ``images/``.

    Each is a list of ``{id, image, conversations}``. An image with captions is described, one chat a caption. Of pairs
    and text pairs it is asked which of two captions fits, once in each order; which comes first depends on the key.
    """
    with BySplit(lambda split: JsonItems(folder / f"{split}.json")) as files:
        for shard in shards:
            for row in caption_rows(shard.samples):
                image = write_image(row.image, folder, row.extension)
                for name, asked, answer in _chats(row):
                    turns = (("human", f"{IMAGE_TOKEN}\n{asked}"), ("gpt", answer))
                    conversation = [{"from": who, "value": value} for who, value in turns]
                    chat = {"id": name, "image": image, "conversations": conversation, **row.terms._asdict()}
                    files[shard.split].append(chat)


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


LLAVA_FORMAT = Format((PAIR, TEXT_PAIR, IMAGE_TEXT), write_llava)
