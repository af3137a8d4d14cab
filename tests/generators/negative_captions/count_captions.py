"""Makes the counts that ship (`generators.negative_captions.exchange.counts`): of COCO's captions (CC BY 4.0).

``python -m tests.generators.negative_captions.count_captions OUT KARPATHY.json.gz … --without captions_val2017.json``:
counts of Karpathy's validation and test, so that those of val2017 stay for tests.
"""

import argparse
import gzip
import json
from collections.abc import Mapping
from pathlib import Path

from twinset.generators.negative_captions.exchange.counts import counted
from twinset.generators.negative_captions.exchange.sites import Reading, reading
from twinset.generators.negative_captions.exchange.vocabulary import vocabulary
from twinset.generators.scene_graphs.relations import parser_of
from twinset.models.spacy_pipelines import EMBEDDED, find_pipeline

TOGETHER = 2  # photos that must name two things for their pair to be kept


def write(table: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """Write counts that tell of an exchange: contexts of two words or more."""
    with path.open("wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", filename="", mtime=0) as stream:
        for context, words in sorted(table.items()):
            least = TOGETHER if context.startswith(("with|", "named")) else 1
            kept = sorted((word, count) for word, count in words.items() if count >= least)
            if len(kept) > 1:
                fields = [field for word, count in kept for field in (word, str(count))]
                stream.write("\t".join([context, *fields]).encode() + b"\n")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("out", type=Path)
    asked.add_argument("files", type=Path, nargs="+")
    asked.add_argument("--without", type=Path, required=True)
    given = asked.parse_args()
    left_out = {one["file_name"][-16:] for one in json.loads(given.without.read_text("utf-8"))["images"]}
    photos: dict[str, list[str]] = {}
    for file in given.files:
        for one in json.loads(gzip.decompress(file.read_bytes())):
            if one["image_name"][-16:] not in left_out:
                photos.setdefault(one["image_name"], []).extend(one["captions"])
    words, parser, readings = vocabulary(), parser_of(find_pipeline(EMBEDDED)), dict[str, Reading]()
    texts = list(dict.fromkeys(caption for captions in photos.values() for caption in captions))
    for at in range(0, len(texts), 1000):
        with parser.nlp.memory_zone():
            part = texts[at : at + 1000]
            readings |= {text: reading(doc, words) for text, doc in zip(part, parser.docs(part), strict=True)}
    table = counted(([readings[text] for text in captions] for captions in photos.values()), words)
    write(table, given.out)
    print(f"{given.out}: {len(table)} contexts of {len(texts)} captions of {len(photos)} photos")


if __name__ == "__main__":
    main()
