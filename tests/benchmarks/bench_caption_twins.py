"""Twins found in real captions against a plain double loop, and in 3.3 million captions: seconds and memory.

    python tests/benchmarks/bench_caption_twins.py [--loop N] [--captions N] [--scratch DIR]

The loop compares all of the first N captions of Flickr8k with all, phrase by phrase; it is timed and scaled up by the
square of their number. Both must find the same pairs among those N. Then COCO's validation captions are planned. Then
as many captions as Conceptual Captions has are sampled from real ones, each with an image of its own; each word of the
lists becomes another one of its set in a third of the cases, so that there are far more neighbours than in real
captions. They are planned in a process of its own. Only planned pairs are parsed, when shards are made: that rate is
printed. Limits: 60 s, 600 s, 6 GiB; beyond them the exit code is 1. --captions 0: leave out the last part.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from measured import peak_mib, row

from twinset.generators.captions.sources import CaptionSources
from twinset.generators.captions.tables import Caption
from twinset.shards.contracts import Context
from twinset_extras.caption_twins.columns import WORD, Captions
from twinset_extras.caption_twins.neighbours import neighbours, phrases_in
from twinset_extras.caption_twins.source import CaptionTwins
from twinset_extras.caption_twins.vocabulary import vocabulary

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data"
RATINGS = SHARED / "concreteness" / "Concreteness_ratings_Brysbaert_et_al_BRM.txt"
FLICKR, COCO, CC3M = (
    SHARED / "captions" / name for name in ("flickr8k_token.txt", "coco_captions_val2017.json", "cc3m_validation.tsv")
)
CHANGED = 1 / 3  # of the words of the lists
LIMITS = {"coco": 60.0, "many": 600.0, "gib": 6.0}
PARSED = 2048  # pairs


def read(path: Path) -> list[Caption]:
    return [one for one in CaptionSources([path]).read() if isinstance(one, Caption)]


def found_in(captions: Sequence[Caption]) -> set[tuple[int, int]]:
    columns, words = Captions(captions), vocabulary()
    found = neighbours(columns, phrases_in(columns, words.phrases), words, np.uint64(0))
    return {(min(both), max(both)) for one in found for both in map(tuple, one.caption.tolist())}


def double_loop(captions: Sequence[Caption]) -> set[tuple[int, int]]:
    """Captions of two images that are the same before and behind a phrase of the lists."""
    listed = vocabulary()
    number = {tuple(phrase.split()): n for n, phrase in enumerate(listed.phrases)}
    texts = []
    for one in captions:
        words = [word for word in WORD.findall(one.caption.lower()) if word not in ("a", "an", "the")]
        places = {(at, at + n): words[at : at + n] for n in (1, 2, 3) for at in range(len(words) + 1 - n)}
        known = {place: number[tuple(said)] for place, said in places.items() if tuple(said) in number}
        texts.append([(words[:start], words[end:], which) for (start, end), which in known.items()])
    found = set()
    for one, other in combinations(range(len(captions)), 2):
        if captions[one].image_id == captions[other].image_id:
            continue
        for before, behind, which in texts[one]:
            for other_before, other_behind, other_which in texts[other]:
                if behind == other_behind and before == other_before and listed.twin[which, other_which] >= 0:
                    found.add((one, other))
    return found


def against_the_loop(number: int) -> None:
    captions = read(FLICKR)
    began = time.perf_counter()
    slow = double_loop(captions[:number])
    looped = (time.perf_counter() - began) * (len(captions) / number) ** 2
    fast = {both for both in found_in(captions[:number])}
    began = time.perf_counter()
    found_in(captions)
    took = time.perf_counter() - began
    print(f"{len(slow)} neighbours among {number} captions; the same: {slow == fast}")
    print(f"{len(captions)} captions: {took:.2f} s; double loop, scaled up: {looped:.0f} s, {looped / took:,.0f} x")
    row(f"neighbours by one word among {len(captions):,} captions", "a double loop, scaled up", [looped / took])
    if slow != fast:
        raise SystemExit(1)


def write_many(path: Path, captions: int) -> None:
    """A token file of sampled captions, of which a third of the words of the lists are others of their set."""
    words = vocabulary()
    number = {phrase: n for n, phrase in enumerate(words.phrases)}
    others = [np.flatnonzero(row >= 0) for row in words.twin]
    texts = [one.caption.replace("\n", " ") for file in (FLICKR, COCO, CC3M) for one in read(file)]
    drawn = np.random.default_rng(0)
    with path.open("w") as file:
        for n, chosen in enumerate(drawn.integers(len(texts), size=captions).tolist()):
            said = texts[chosen].lower().split()
            for at, word in enumerate(said):
                if len(able := others[number[word]] if word in number else ()) and drawn.random() < CHANGED:
                    said[at] = words.phrases[able[int(drawn.random() * len(able))]]
            file.write(f"{n:08d}.jpg#0\t{' '.join(said)}\n")


def plan(path: Path) -> None:
    """Plan in this process and print what it took; the parent reads the line."""
    settings: Any = {"captions": path, "images": path.parent, "concreteness": RATINGS, "licence": "MIT"}
    generator: Any = CaptionTwins(kind="caption-twins", confirm="en_ewt_sm", **settings).open(Context("twins"))
    began = time.perf_counter()
    first, planned = [], 0
    for one in generator.plan():
        planned += 1
        if planned <= PARSED:
            first.append(one)
    took, peak = time.perf_counter() - began, peak_mib() / 1024
    generator.agreed(first[:8])  # loads the pipelines
    began = time.perf_counter()
    generator.agreed(first)
    rate = len(first) / (time.perf_counter() - began)
    print(json.dumps({"planned": planned, "seconds": took, "gib": peak, "parsed": rate}))


def planned_alone(path: Path, limit: float) -> bool:
    """Whether planning in a process of its own keeps the limits."""
    done = subprocess.run([sys.executable, __file__, "--plan", path], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    print(
        f"{path.name}: {found['planned']:,} pairs planned in {found['seconds']:.1f} s (limit {limit:.0f} s), "
        f"{found['gib']:.2f} GiB; {found['parsed']:.0f} pairs a second parsed twice"
    )
    row(
        f"{found['planned']:,} twins planned from {path.name}",
        f"limit {limit:.0f} s",
        [found["seconds"]],
        f"{found['gib']:.2f} GiB; {found['parsed']:.0f} pairs a second parsed twice",
        unit="s",
    )
    return found["seconds"] <= limit and found["gib"] <= LIMITS["gib"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loop", type=int, default=6000)
    parser.add_argument("--captions", type=int, default=3_300_000)
    parser.add_argument("--scratch", type=Path, help="folder for 300 MB of temporary files")
    parser.add_argument("--plan", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.plan:
        plan(arguments.plan)
        return
    against_the_loop(arguments.loop)
    kept = planned_alone(COCO, LIMITS["coco"])
    if arguments.captions:
        with TemporaryDirectory(dir=arguments.scratch) as folder:
            path = Path(folder) / "many.txt"
            write_many(path, arguments.captions)
            kept = planned_alone(path, LIMITS["many"]) and kept
    raise SystemExit(not kept)


if __name__ == "__main__":
    main()
