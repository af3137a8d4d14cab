"""Texts a second of the stage's scorer against one text at a time, and against scoring a caption with each negative.

    python tests/benchmarks/bench_caption_scores.py [--negatives FILE] [--captions N] [--model MODEL] [--precision P]

The table of negatives is the index of a finished stage (``_meta/index.parquet``); without one, captions and negatives
are made here, seven negatives a caption. Each way scores the texts of so many captions with all of their negatives:

* one by one: each distinct text in a pass of its own;
* each pair: caption and negative of each row, so that a caption is scored once for each of its negatives, in padded
  passes of 32 texts of like length;
* twinset: each distinct text once, in passes that read shared beginnings once.

The clock is CPU time of one thread, which holds on a busy machine. Printed: texts a second, ratios of the time for
the same rows, the largest difference of a score, and how long 96,467 texts (COCO's validation captions with their
negatives by the rules) take on two cores.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

from measured import row

os.environ.setdefault("OMP_NUM_THREADS", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
import torch  # noqa: E402

from twinset.generators.caption_scores.scorers.language_model import LanguageModel, LanguageModelScorer  # noqa: E402
from twinset.generators.caption_scores.scorers.scorer import padded, passes, tokenize  # noqa: E402

COCO_TEXTS, CORES, MICRO_BATCH = 96_467, 2, 32
PLACES = ("on the beach", "in a kitchen", "at night", "near a red bus", "by the lake", "on a field", "in the snow")
SCENES = ("A man riding a {}", "Two women with a {}", "A small child next to a {}", "The {} that a dog looks at")
OBJECTS = ("horse", "bicycle", "wooden table", "motorcycle", "surfboard", "kite", "pizza", "train", "white cat")


def own_pairs(captions: int) -> list[tuple[str, str]]:
    """Captions and seven negatives each: the object replaced in four, the place in three."""
    pairs = []
    for number in range(captions):
        rest, scene = divmod(number * 7919, len(SCENES))
        rest, object_ = divmod(rest, len(OBJECTS))
        place = rest % len(PLACES)

        def text(one: int, where: int, scene: int = scene, number: int = number) -> str:
            return (
                f"{SCENES[scene].format(OBJECTS[one % len(OBJECTS)])} {PLACES[where % len(PLACES)]}, number {number}."
            )

        replaced = [text(object_ + n, place) for n in range(1, 5)] + [text(object_, place + n) for n in range(1, 4)]
        pairs += [(text(object_, place), negative) for negative in replaced]
    return pairs


def read_pairs(path: Path, captions: int) -> list[tuple[str, str]]:
    table = pq.read_table(path, columns=["caption", "negative_caption"]).drop_null()
    pairs = list(zip(table["caption"].to_pylist(), table["negative_caption"].to_pylist(), strict=True))
    chosen = set(list(dict.fromkeys(caption for caption, _ in pairs))[:captions])
    return [pair for pair in pairs if pair[0] in chosen]


def plain_passes(scorer: LanguageModelScorer, texts: list[str], micro_batch: int) -> np.ndarray:
    """Mean log-probabilities by padded passes, as one writes them without a tree."""
    model, tokenizer = scorer._model, scorer._tokenizer
    ids = [[scorer._begin, *one] for one in tokenize(tokenizer, texts, scorer._most, special=False).ids]
    values = np.empty(len(texts))
    for places in passes(ids, micro_batch):
        tokens, mask = map(torch.from_numpy, padded([ids[place] for place in places], 0))
        logits = model(input_ids=tokens, attention_mask=mask, use_cache=False).logits[:, :-1].float()
        chances = logits.gather(2, tokens[:, 1:, None]).squeeze(2) - logits.logsumexp(dim=2)
        told = mask[:, 1:]
        values[places] = ((chances * told).sum(dim=1) / told.sum(dim=1)).numpy()
    return values


def timed(work: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    began = time.process_time()
    found = work()
    return found, time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--negatives", type=Path)
    parser.add_argument("--captions", type=int, default=200)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--precision", choices=("float32", "bfloat16"), default="float32")
    parser.add_argument("--alone", type=int, default=100, help="texts that are scored one by one (default 100)")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    pairs = read_pairs(asked.negatives, asked.captions) if asked.negatives else own_pairs(asked.captions)
    settings = LanguageModel(kind="language-model", model=asked.model, precision=asked.precision)
    scorer = settings.open("cpu")
    distinct = list(dict.fromkeys(text for pair in pairs for text in pair))
    repeated = [text for pair in pairs for text in pair]
    with torch.inference_mode():
        scorer(distinct[:MICRO_BATCH], MICRO_BATCH)  # libraries load parts of themselves at first use
        ours, seconds = timed(lambda: scorer(distinct, MICRO_BATCH).values)
        alone, alone_seconds = timed(lambda: plain_passes(scorer, distinct[: asked.alone], 1))
        _, pair_seconds = timed(lambda: plain_passes(scorer, repeated, MICRO_BATCH))
    alone_seconds *= len(distinct) / len(alone)
    print(
        f"{len(pairs)} negatives, {len(distinct)} distinct texts, {asked.model}, {asked.precision}, CPU time, 1 thread"
    )
    for name, spent, texts in (
        ("one by one", alone_seconds, len(distinct)),
        ("each pair", pair_seconds, len(repeated)),
        ("twinset", seconds, len(distinct)),
    ):
        ratio = f"twinset is {spent / seconds:.2f} x"
        print(f"{name:<10} {texts / spent:6.1f} texts/s, {spent:7.1f} s for these rows: {ratio}")
    row(
        f"{asked.model}, {len(distinct)} distinct captions of {len(pairs)} rule-made negatives, one thread, CPU time",
        "one text at a time",
        [alone_seconds / seconds],
        f"each pair by itself: {pair_seconds / seconds:.2f} ×",
    )
    print(f"largest difference of a score from one by one: {np.abs(ours[: len(alone)] - alone).max():.1e}")
    print(f"{COCO_TEXTS} texts on {CORES} cores: {COCO_TEXTS / len(distinct) * seconds / CORES / 60:.0f} minutes")


if __name__ == "__main__":
    main()
