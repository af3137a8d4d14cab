"""The file of ratings, what its words are worth under either rules, and files of another shape."""

import math
from pathlib import Path

import pytest

from twinset.contracts.errors import WrongUse
from twinset.generators.triplets.ratings import UNKNOWN, load_ratings

HEADER = "Word\tBigram\tConc.M\tConc.SD\n"
WORDS = "glass\t0\t4.82\t0.1\nglasses\t0\t4.86\t0.1\nHat\t0\t5\t0\nfire truck\t1\t4.9\t0.2\nthen\t0\t1.4\t0.9\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ratings.txt"
    path.write_text(HEADER + WORDS, "utf-8")
    return path


def test_rated_words_keep_their_ratings_and_others_have_their_lemma_s(file: Path) -> None:
    ratings = load_ratings(file, "strict")
    assert ratings.published is None
    words = ["glasses", "Glass", "hats", "HATS", "fire trucks", "thingummy"]
    lemmas = ["glass", "glass", "hat", "hat", "fire truck", "thingummy"]
    found = ratings.strict_of(words, lemmas).tolist()
    assert found[:5] == [4.86, 4.82, 5.0, 5.0, 4.9] and math.isnan(found[5])


def test_published_plurals_overwrite(file: Path) -> None:
    pytest.importorskip(
        "inflect", reason="inflect makes the plurals of the published rules: pip install 'twinset[text]'"
    )
    ratings = load_ratings(file, "published")
    assert ratings.published_of(["glass", "glasses", "hats", "Hat", "thingummy"]).tolist() == [
        4.82,
        4.82,
        5.0,
        UNKNOWN,
        UNKNOWN,
    ]
    assert ratings.rated["glasses"] == 4.86


def test_line_ends_and_a_byte_order_mark_are_no_part_of_words(file: Path) -> None:
    before = load_ratings(file, "strict")
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes().replace(b"\n", b"\r\n") + b"\r\n\r\n")
    assert load_ratings(file, "strict") == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "line 1: no columns"),
        ("word,conc\nhat,5\n", "line 1: no columns"),
        ("Word\tBigram\nhat\t0\n", "line 1: no columns"),
        (HEADER, "no word in it"),
        (HEADER + WORDS + "cap\t0\n", "line 7: 2 columns where the first line has 4"),
        (HEADER + "cap\t0\thigh\t0\n", "line 2: Conc.M is 'high', no number"),
        (HEADER + "cap\t0\tnan\t0\n", "line 2: 'cap' rated nan"),
        (HEADER + "cap\t0\t485\t0\n", "line 2: 'cap' rated 485; ratings are of words and go from 1 to 5"),
        (HEADER + " \t0\t4.8\t0\n", "line 2: '' rated 4.8"),
        (HEADER + f"{'z' * 3_000_000}\t0\t4.8\t0\n", "line 2: 'z{200}' rated 4.8; ratings are of words"),
        (HEADER + WORDS + "hat\t0\t3\t0\n", "line 7: 'hat' is rated in line 4 already"),
        (HEADER.encode() + b"caf\xe9\t0\t4.8\t0\n", "line 2: not UTF-8"),
        ((HEADER + WORDS).encode("utf-16"), "line 1: no columns"),
        (None, "No such file"),
    ],
)
def test_a_file_of_another_shape_is_refused_with_its_place(
    file: Path, content: str | bytes | None, message: str
) -> None:
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(WrongUse, match=message) as refused:
        load_ratings(file, "strict")
    assert str(file) in str(refused.value)
