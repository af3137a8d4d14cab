"""Negatives that words tell are left out, others stay; kinds that are left with too few go whole."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.generators.finished_stage import finished, write_index
from tests.generators.words_alone.test_probe import captions
from twinset.contracts.canonical import identity_of
from twinset.contracts.errors import WrongUse
from twinset.generators.negative_captions.kinds import COLUMNS, NegativeCaption
from twinset.generators.words_alone.probe import Sampled, words_table
from twinset.generators.words_alone.refined import RefinedNegatives, refined
from twinset.shards.contracts import Context, Generator


def table(folder: Path, pairs: dict[str, list[tuple[str, str]]]) -> None:
    rows = []
    for kind, some in pairs.items():
        type_, subtype = kind.split("_")
        for at, (caption, negative) in enumerate(some):
            row = dict(zip(COLUMNS.names, (str(at), str(at), "", caption, negative, type_, subtype), strict=True))
            rows.append({"key": f"{kind}-{at}", "identity": identity_of(kind, at), "group": f"caption-{at}", **row})
    ids = [pa.field(name, pa.string()) for name in ("key", "identity", "group")]
    write_index(pa.Table.from_pylist(rows, pa.schema([*ids, *COLUMNS])), folder, "negatives", len(rows))


def opened(folder: Path, area: float = 0.56) -> Generator[RefinedNegatives]:
    source = RefinedNegatives(kind="refined-negatives", negatives="negatives", area=area)
    return source.open(Context("refined", earlier=finished(folder, "negatives")))


def telling(pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(caption, negative.replace("beside a", "beside a masked")) for caption, negative in pairs]


def test_what_words_tell_is_left_out_and_the_rest_stays() -> None:
    pairs = captions(500, 0) + telling(captions(200, 1))
    stay = refined(*zip(*pairs, strict=True), 0.56, np.random.default_rng(0))
    assert np.sum(stay >= 500) < 140  # of the 200 that a word tells
    assert np.sum(stay < 500) > 490


def test_additions_are_compared_with_captions_of_their_length() -> None:
    # Each negative has one filler more than its caption, which tells nothing; 300 of 900 have a word that tells.
    draw = random.Random(4)
    fillers = ["here", "there", "now", "again"]
    longer = []
    for caption, negative in captions(900, 5):
        end = draw.choices(fillers, k=draw.randint(0, 9))
        longer.append((" ".join([caption, *end]), " ".join([negative, *end, draw.choice(fillers)])))
    pairs = longer[:600] + telling(longer[600:])
    stay = refined(*zip(*pairs, strict=True), 0.56, np.random.default_rng(0))
    assert np.sum(stay >= 600) < 150
    assert np.sum(stay < 600) > 500


def test_captions_that_are_all_equal_are_refused(tmp_path: Path) -> None:
    table(tmp_path, {"add_att": [("a dog", "a red dog")] * 200})
    with pytest.raises(WrongUse, match=r"fewer than 100 are left \(add_att 200\)"):
        list(opened(tmp_path).plan())


def test_a_kind_that_words_tell_goes_whole(tmp_path: Path) -> None:
    table(
        tmp_path, {"replace_att": captions(300, 0), "add_att": telling(captions(300, 1)), "swap_obj": captions(40, 2)}
    )
    generator = opened(tmp_path)
    kept = list(generator.plan())
    assert all(isinstance(one, NegativeCaption) for one in kept)
    assert Counter(one.counted_as for one in kept).keys() == {"replace_att"}
    assert generator.excluded["known-by-words"] == 640 - len(kept)
    card = generator.source.how_made({"words.json": {k: v for k, v in _report(generator).items()}})
    assert "add att" in card and "too few" in card


def _report(generator: Generator[RefinedNegatives]) -> dict[str, object]:
    import json

    found: dict[str, object] = json.loads(generator.reports()["words.json"])
    return found


def test_nothing_left_is_said(tmp_path: Path) -> None:
    table(tmp_path, {"add_att": telling(captions(200, 1))})
    with pytest.raises(WrongUse, match=r"add_att 200.*higher area"):
        list(opened(tmp_path).plan())


def test_a_sample_is_bounded_and_even() -> None:
    sampled = Sampled(seed=1)
    for start in range(0, 5000, 500):
        names = [f"caption {place} here" for place in range(start, start + 500)]
        sampled.add(pa.array(names), pa.array(names), pa.array(["replace_obj"] * 500))
    (found,) = sampled.probed().values()
    assert found.pairs == 1000
    drawn = [int(one.split()[1]) for one, _ in sampled._pairs["replace_obj"]]
    assert np.mean(drawn) == pytest.approx(2500, abs=250)


def test_the_table_says_too_few() -> None:
    sampled = Sampled()
    sampled.add(pa.array(["a dog"] * 3), pa.array(["a cat"] * 3))
    assert "| all pairs | 3 | too few | too few |" in words_table(sampled.probed())
