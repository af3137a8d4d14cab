"""Drawn pairs of captions: one difference each, evenly spread, the same however many are asked for."""

import json
from collections import Counter
from dataclasses import asdict
from itertools import islice, product
from pathlib import Path

import pytest

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.generators.prompt_to_prompt.source import StableDiffusion
from twinset.generators.prompt_to_prompt.vocabulary import (
    KINDS,
    CaptionVocabulary,
    DrawnEdit,
    draw_edits,
    load_captions,
    vocabulary_file,
)

WORDS = {"thing": ["cat", "dog"]}
GOLDEN = {"figure-15": "4ea14156d5668c277878a8a6cf4922fd", "small-world": "71bbccfce4759279fd6f8d6712190961"}


def drawn(name: str, count: int, seed: int = 0, subset: str = "eq-sd") -> list[DrawnEdit]:
    return list(islice(draw_edits(load_captions(vocabulary_file(name)), seed, subset), count))


@pytest.mark.parametrize("name", GOLDEN)
def test_the_captions_of_a_pair_differ_in_its_words_alone(name: str) -> None:
    for pair in drawn(name, 900):
        assert "" not in pair.words or pair.words[pair.plain] == "", "a phrase is added to the picture without it"
        captions = [f" {caption.rstrip('.')} " for caption in pair.captions]
        rest = [text.replace(f" {word} ", " ").split() for text, word in zip(captions, pair.words, strict=True)]
        assert pair.words[0] != pair.words[1] and rest[0] == rest[1]


@pytest.mark.parametrize("name", GOLDEN)
def test_kinds_rows_and_words_come_equally_often(name: str) -> None:
    pairs, vocabulary = drawn(name, 1513), load_captions(vocabulary_file(name))
    kinds = Counter(pair.kind for pair in pairs)
    assert set(kinds) == set(KINDS) and max(kinds.values()) - min(kinds.values()) <= 1
    for kind in KINDS:
        sides = Counter(pair.plain for pair in pairs if pair.kind == kind)
        assert abs(sides[0] - sides[1]) <= 0.1 * kinds[kind]
        for number in vocabulary.of_kind(kind):
            row = vocabulary.rows[number]
            words = Counter(word for pair in pairs if pair.row == number for word in pair.words)
            assert set(words) == set(row.words[row.changes]) and max(words.values()) <= 1.35 * min(words.values())


def test_the_stream_of_a_version_never_changes() -> None:
    # Raise the version of `StableDiffusion` with these.
    found = {name: digest([asdict(pair) for pair in drawn(name, 100)]) for name in GOLDEN}
    assert (StableDiffusion.version, found) == (6, GOLDEN)
    assert drawn("figure-15", 50) not in (drawn("figure-15", 50, seed=1), drawn("figure-15", 50, subset="eq-sd-2"))


def test_figure_15_has_the_captions_that_the_paper_prints() -> None:
    printed = """A painting of cat wearing a cap. A painting of cat wearing a crown. A pencil sketch of train.
        A Van Gogh post-impressionism painting of train. A painting of squirrel eating. A painting of fox eating.
        A photo of a blue desk. A photo of a brown desk. A photo of beach. A photo of beach at sunset."""
    vocabulary, found = load_captions(vocabulary_file("figure-15")), set[str]()
    for row in vocabulary.rows:
        found |= {row.caption(dict(zip(row.words, chosen, strict=True))) for chosen in product(*row.words.values())}
    assert {f"{one.strip()}." for one in " ".join(printed.split()).split(".") if one} <= found
    assert {"A photo of cat.", "An oil painting of bus.", "A photo of a house on a mountain at fog."} <= found
    # 8 sets of objects and scenes in two styles, 4 scenes, 3 rows of attributes, as the figure lists them.
    assert [len(vocabulary.of_kind(kind)) for kind in ("object", "scene", "attribute")] == [8, 4, 3]
    objects = 2 * (7 * 4 + 7 * 5 + 3 * 4 + 3 * 3 + 2 * 2 + 5 * 2 + 2 * 2 + 4 * 3)
    assert len(found) == objects + (7 + 6 + 6 + 4) + (2 * 2 * 6 + 2 * 10 * 4 + 10 * 4)


def test_a_row_that_does_not_hang_together_is_refused(tmp_path: Path) -> None:
    rows = [{"kind": kind, "template": "A {thing}.", "changes": "thing", "words": WORDS} for kind in KINDS]
    CaptionVocabulary.model_validate({"rows": rows})
    path = tmp_path / "words.yaml"
    for change, message in (
        ({"template": "A {thing.__class__}."}, "each of its slots needs words"),
        ({"changes": "place"}, "'place' is no slot"),
        ({"words": {"thing": ["cat"]}}, "needs two words that can differ"),
    ):
        path.write_text(json.dumps({"rows": [{**rows[0], **change}, *rows]}))
        with pytest.raises(WrongUse, match=rf"words\.yaml: not a vocabulary(.|\n)*{message}"):
            load_captions.__wrapped__(path)
