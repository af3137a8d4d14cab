"""Blind attacks counted by hand: who is longer, who scores higher, and ties that count half.

Guesses and their clustered intervals against brute force, and what counts as solved blind.
What sources say of themselves; tests/guard/contracts holds them to the contract.
"""

import math
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from twinset.cards.sheet import words_of
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import load_recipe
from twinset.contracts.source import SOURCES
from twinset.generators.annotation_files import Skipped, is_media_name, read_json, read_json_lines, seconds
from twinset.generators.blind_attacks import COLUMNS, WORD, SignCounts, accuracy, attack_table, gaps_of, kinds_of
from twinset.generators.blind_guesses import LEAST_GROUPS, Guess, GuessCounts, between, guess, same_bag
from twinset.generators.negative_captions.changes import words
from twinset.shards.contracts import Context, Source


def written(folder: Path, content: bytes) -> Path:
    path = folder / "annotation.json"
    path.write_bytes(content)
    return path


def test_a_byte_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    path = written(tmp_path, b'{"caption": "caf\xe9"}')
    with pytest.raises(WrongUse, match=r"annotation\.json: byte 16 \(0xe9\) is not UTF-8; save the file as UTF-8"):
        read_json(path)


def test_a_line_that_cannot_be_read_does_not_stop_the_others(tmp_path: Path) -> None:
    lines = [b'{"a": 1}', b"", b'{"b": "\xff"}', b'{"b": ', b'{"c": 1, "\\u0063": 1}', b'"\\ud800"', b'{"c": 2}']
    assert list(read_json_lines(written(tmp_path, b"\n".join(lines)))) == [
        (1, {"a": 1}),
        (3, Skipped("line 3", "not-utf-8")),
        (4, Skipped("line 4", "not-json")),
        (5, Skipped("line 5", "repeated-key")),
        (6, Skipped("line 6", "not-json")),
        (7, {"c": 2}),
    ]


def test_a_file_without_a_line_of_json_is_wrong_use(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"annotation\.json: not one line is JSON \(line 1: not-utf-8\)"):
        list(read_json_lines(written(tmp_path, b"\x80\x04\n" * 3)))


def test_the_line_that_is_not_json_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"line 2, column 7: not JSON"):
        read_json(written(tmp_path, b'{"a": 1,\n "b": oops}\n'))


@pytest.mark.parametrize("content", [b"", b"[" * 200_000, b"9" * 5000, b'"\\ud800"'])
def test_what_json_cannot_be_read_as_text_is_wrong_use(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(WrongUse, match=r"annotation\.json"):
        read_json(written(tmp_path, content))


@pytest.mark.parametrize("content", [b'{"a": 1, "b": {"c": 1, "c": 2}}', b'[{"c": 1, "\\u0063": 1}]'])
def test_a_key_that_stands_twice_is_named(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(WrongUse, match=r"annotation\.json: one object has the key 'c' twice"):
        read_json(written(tmp_path, content))


def test_surrogate_pairs_and_byte_order_marks_are_text(tmp_path: Path) -> None:
    assert read_json(written(tmp_path, b'\xef\xbb\xbf"\\ud83c\\udf73"')) == "\N{COOKING}"


def test_a_missing_file_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match=r"none\.json: cannot be read .*; name a file that this user may read"):
        read_json(tmp_path / "none.json")
    with pytest.raises(WrongUse, match=r"none\.json: cannot be read .*No such file"):
        list(read_json_lines(tmp_path / "none.json"))


@pytest.mark.parametrize("name", ["../x", "a/../../x", "/etc/passwd", "", "..\\b", "a\0b", "\ud800"])
def test_names_that_leave_the_media_folder_are_refused(name: str) -> None:
    assert not is_media_name(name)


@pytest.mark.parametrize("name", ["--33Lscn6sk", "a.b.mp4", "train/x", "train\\x", "..x"])
def test_odd_names_within_the_folder_are_kept(name: str) -> None:
    assert is_media_name(name)


@pytest.mark.parametrize(
    ("value", "time"),
    [(1, 1.0), (2.5, 2.5), ("3.77", 3.77), (0, 0.0)]
    + [(bad, None) for bad in (True, None, "soon", -1, float("nan"), float("inf"), [1], 10**400, 1e308, 1e8)],
)
def test_times_are_finite_seconds(value: object, time: float | None) -> None:
    assert seconds(value) == time


PAIRS = [
    ("A dog.", "A big dog.", "add", "att", 0.9, 0.1),
    ("A cat sat.", "A mat sat.", "replace", "obj", 0.2, 0.2),
    ("A man on a bus.", "A bus.", "replace", "obj", 0.3, 0.6),
    ("A kite.", "A red, old kite.", "", "", None, 0.6),
    ("A lamp.", "A ramp.", "replace", "obj", math.nan, 0.5),
]


def batch() -> pa.RecordBatch:
    names = ("caption", "negative_caption", "type", "subtype", "vera_caption", "vera_negative")
    columns = dict(zip(names, map(list, zip(*PAIRS, strict=True)), strict=True))
    empty = {name: pa.nulls(len(PAIRS), pa.float64()) for name in COLUMNS if name not in names}
    scores = {name: pa.array(columns.pop(name), pa.float64()) for name in names[-2:]}
    return pa.record_batch({**{name: pa.array(values) for name, values in columns.items()}, **scores, **empty})


def add(counts: SignCounts, part: pa.RecordBatch) -> None:
    kinds = kinds_of(part["type"], part["subtype"]).dictionary_encode()
    counts.add(gaps_of(part), kinds.indices.to_numpy(), kinds.dictionary.to_pylist())


@pytest.mark.parametrize("size", [1, 2, 5])
def test_signs_of_gaps_are_counted_by_kind_however_the_table_comes(size: int) -> None:
    counts = SignCounts()
    for start in range(0, len(PAIRS), size):
        add(counts, batch().slice(start, size))
    signs = counts.signs()
    assert signs["words"] == {"all": [2, 2, 1], "add_att": [1, 0, 0], "replace_obj": [0, 2, 1], "unknown": [1, 0, 0]}
    assert signs["characters"]["replace_obj"] == [0, 2, 1]
    assert signs["vera"] == {"all": [1, 1, 1], "add_att": [0, 0, 1], "replace_obj": [1, 1, 0]}
    assert signs.keys() == {"characters", "words", "vera"}, "scores that no pair has are told"


def test_half_of_ties_are_right() -> None:
    assert accuracy([2, 2, 1], 1) == 2 / 5 and accuracy([2, 2, 1], -1) == 3 / 5
    assert accuracy([0, 7, 0], 1) == 0.5


def test_the_table_shows_both_directions_of_lengths_and_no_share_of_nothing() -> None:
    counts = SignCounts()
    add(counts, batch())
    lines = attack_table(counts.signs(), ["replace_obj", "add_att", "unknown"]).splitlines()
    assert lines[0] == "| guessed true: the caption that has | all | ties | replace obj | add att | unknown |"
    assert "| fewer words | 60.0% | 40.0% | 33.3% | 100.0% | 100.0% |" in lines
    assert "| more words | 40.0% | 40.0% | 66.7% | 0.0% | 0.0% |" in lines
    assert "| higher VERA | 50.0% | 33.3% | 25.0% | 100.0% | – |" in lines
    assert not any("CoLA" in line or "language" in line for line in lines)
    assert attack_table({}, []) == ""


def test_a_batch_of_known_kinds_is_counted_too() -> None:
    counts = SignCounts()
    counts.add({"words": np.array([1.0, np.nan, -2.0])}, np.array([1, 1, 0], np.int16), ["a", "b", "c"])
    assert counts.signs() == {"words": {"all": [1, 0, 1], "a": [1, 0, 0], "b": [0, 0, 1]}}


@pytest.mark.parametrize(
    "text", ["A T-shirt's on_1 'top', isn't it?", "二人の男 été – naïve", "", " 3.5 x", "a--b co-op’s"]
)
def test_words_are_those_of_negative_captions(text: str) -> None:
    assert pc.count_substring_regex(pa.array([text]), WORD)[0].as_py() == len(words(text))


def clustered(sizes: np.ndarray, share: float, seed: int, within: float = 0.8) -> tuple[np.ndarray, np.ndarray]:
    """Signs and groups; most pairs of a group are answered alike."""
    random = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
    alike = random.random(len(sizes)) < share
    own = random.random(len(groups)) < share
    right = np.where(random.random(len(groups)) < within, alike[groups], own)
    return np.where(right, 1, -1).astype(np.int8), groups


@pytest.mark.parametrize("share", [0.5, 0.72, 0.9])
def test_the_interval_is_that_of_a_bootstrap_over_groups(share: float) -> None:
    signs, groups = clustered(np.tile([1, 2, 5, 12], 60), share, seed=1)
    sums, counts = np.bincount(groups, weights=signs > 0), np.bincount(groups)
    weights = np.random.default_rng(0).multinomial(len(counts), np.full(len(counts), 1 / len(counts)), 4000)
    low, high = np.quantile((weights @ sums) / (weights @ counts), [0.025, 0.975])
    found = guess(signs, groups)
    assert (found.low, found.high) == (pytest.approx(low, abs=0.012), pytest.approx(high, abs=0.012))
    alone = guess(signs, np.arange(len(signs), dtype=np.int32))
    assert alone.high - alone.low < 0.6 * (found.high - found.low), "groups make no difference"


def test_the_interval_holds_the_truth_as_often_as_it_says() -> None:
    held = 0
    for seed in range(400):
        signs, groups = clustered(np.tile([1, 3, 6], 8), 0.7, seed, within=0.5)
        found = guess(signs, groups)
        held += found.low <= 0.7 <= found.high
    assert 0.92 <= held / 400 <= 0.985


def test_ties_count_half_and_only_ties_are_exactly_chance() -> None:
    groups = np.arange(20, dtype=np.int32)
    some = guess(np.array([1] * 10 + [0] * 6 + [-1] * 4, np.int8), groups)
    assert (some.n, some.groups, some.right, some.ties, some.expected) == (20, 20, 10, 6, 0.65)
    tied = guess(np.zeros(20, np.int8), groups)
    assert (tied.expected, tied.low, tied.high, tied.solved) == (0.5, 0.5, 0.5, False)


def test_what_is_always_right_is_solved_when_there_are_groups_enough() -> None:
    def perfect(groups: int) -> Guess:
        return guess(np.ones(4 * groups, np.int8), np.repeat(np.arange(groups, dtype=np.int32), 4))

    assert perfect(LEAST_GROUPS).solved and 0.6 < perfect(LEAST_GROUPS).low < 0.75 and perfect(10).high == 1.0
    assert perfect(200).low > 0.97
    few = perfect(LEAST_GROUPS - 1)
    assert (few.low, few.high, few.solved, between(few)) == (None, None, False, "–")


def test_more_than_chance_but_within_the_margin_is_not_solved() -> None:
    signs = np.where(np.arange(100_000) % 100 < 54, 1, -1).astype(np.int8)
    found = guess(signs, np.arange(100_000, dtype=np.int32))
    assert found.low > 0.53 and not found.solved


@pytest.mark.parametrize(
    "caption, other, same",
    [
        ("A dog bites a man.", "A man bites a dog!", True),
        ("two men on four-wheelers", "four men on two-wheelers", True),
        ("a dog and a dog", "a dog and dog", False),
        ("the woman's hat", "the woman hat's", False),
        ("", "", True),
        ("ÉTÉ rouge", "rouge été", True),
    ],
)
def test_bags_of_words(caption: str, other: str, same: bool) -> None:
    assert same_bag(words_of(caption), words_of(other)) is same


def tally(size: int) -> GuessCounts:
    """Forty pairs of twenty groups: kind ``a`` is solved by the shorter caption, ``b`` by nothing."""
    gaps = np.array([-3.0, -1.0] * 10 + [2.0, -2.0] * 10)
    scores = np.array([np.nan] * 20 + [1.0] * 10 + [-1.0] * 10)
    groups, kinds = pa.array([f"g{n // 2}" for n in range(40)]), pa.array(["a"] * 20 + ["b"] * 20)
    found = GuessCounts()
    for start in range(0, 40, size):
        part = slice(start, start + size)
        found.add({"characters": gaps[part], "lm": scores[part]}, groups[part], kinds[part])
    return found


@pytest.mark.parametrize("size", [1, 7, 40])
def test_kinds_that_are_solved_are_named_and_bold_however_the_table_comes(size: int) -> None:
    found = tally(size)
    assert found.judged
    ((_, said, one),) = [each for each in found.solved(["a", "b", "c"]) if each[0] != "all"]
    assert (said, one.right, one.n, one.groups) == ("shorter", 20, 20, 10)
    heads, _, *rows = found.table("true", ["a", "b", "c"]).splitlines()
    assert heads == "| guessed true: the caption that has | all | 95 % interval | ties | a | b | c |"
    shorter = next(row for row in rows if row.startswith("| shorter "))
    assert shorter.endswith("| **100.0%** | 50.0% | – |")
    assert next(row for row in rows if "language-model" in row).endswith("| 0.0% | – | 50.0% | – |")
    assert found.guess("vera") is None and found.guess("lm", "a") is None


def test_an_empty_tally_has_no_table() -> None:
    assert (GuessCounts().table("true", ["a"]), GuessCounts().solved(["a"]), GuessCounts().judged) == ("", [], False)


@pytest.mark.parametrize("kind", SOURCES.kinds())
def test_every_source_says_what_it_is(kind: str) -> None:
    settings = SOURCES.find(kind)
    assert issubclass(settings, Source)
    reads = any(settings.leads_to(name) == "stage" for name in settings.model_fields)
    told = settings.reference.title or settings.made_from is not Source.made_from  # settings decide it
    assert told or reads, "a card names the data set that all comes from"
    assert settings.group and settings.__doc__
    rejects_nothing = kind in ("negative-prompts", "negative-images", "image-neighbours")
    assert bool(settings.reasons) != rejects_nothing
    assert all(meaning == meaning.strip() and meaning[-1] != "." for meaning in settings.reasons.values())


def test_a_source_that_names_no_generator_cannot_be_opened() -> None:
    class Unnamed(Source):
        kind: Literal["unnamed"] = "unnamed"
        licence: str = "CC0-1.0"

    with pytest.raises(WrongUse, match=r"source 'unnamed': its class names no generator; set generator"):
        Unnamed().open(Context("s"))


def test_words_of_the_demo_are_markdown() -> None:
    for stage in load_recipe("demo").all.values():
        for text in (stage.source.notes(), stage.source.how_made({}), stage.source.introduction()):
            assert "{" not in text and (not text or text.endswith(("\n", ".", "?")))
