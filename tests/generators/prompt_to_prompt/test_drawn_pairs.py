"""Drawn pairs: captions with one difference, evenly spread, and pictures by a tiny model of random weights."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from itertools import islice, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.generators.prompt_to_prompt import vocabulary
from twinset.generators.prompt_to_prompt.source import StableDiffusion, broken
from twinset.generators.prompt_to_prompt.vocabulary import KINDS, CaptionVocabulary, DrawnEdit, EditedCandidate

WORDS = {"thing": ["cat", "dog"]}
GOLDEN = {"figure-15": "4ea14156d5668c277878a8a6cf4922fd", "small-world": "71bbccfce4759279fd6f8d6712190961"}


def known(name: str) -> CaptionVocabulary:
    return vocabulary.load_captions(vocabulary.vocabulary_file(name))


def drawn(name: str, count: int, seed: int = 0, subset: str = "eq-sd") -> list[DrawnEdit]:
    return list(islice(vocabulary.draw_edits(known(name), seed, subset), count))


@pytest.mark.parametrize("name", GOLDEN)
def test_the_captions_of_a_pair_differ_in_its_words_alone(name: str) -> None:
    for pair in drawn(name, 900):
        assert "" not in pair.words or pair.words[pair.plain] == "", "a phrase is added to the picture without it"
        captions = [f" {caption.rstrip('.')} " for caption in pair.captions]
        rest = [text.replace(f" {word} ", " ").split() for text, word in zip(captions, pair.words, strict=True)]
        assert pair.words[0] != pair.words[1] and rest[0] == rest[1]


@pytest.mark.parametrize("name", GOLDEN)
def test_kinds_rows_and_words_come_equally_often(name: str) -> None:
    pairs, captions = drawn(name, 1513), known(name)
    kinds = Counter(pair.kind for pair in pairs)
    assert set(kinds) == set(KINDS) and max(kinds.values()) - min(kinds.values()) <= 1
    for kind in KINDS:
        sides = Counter(pair.plain for pair in pairs if pair.kind == kind)
        assert abs(sides[0] - sides[1]) <= 0.1 * kinds[kind]
        for number in captions.of_kind(kind):
            row = captions.rows[number]
            words = Counter(word for pair in pairs if pair.row == number for word in pair.words)
            assert set(words) == set(row.words[row.changes]) and max(words.values()) <= 1.35 * min(words.values())


def test_the_stream_of_a_version_never_changes() -> None:
    # Raise the version of `StableDiffusion` with these.
    digests = {name: digest([asdict(pair) for pair in drawn(name, 100)]) for name in GOLDEN}
    assert (StableDiffusion.version, digests) == (6, GOLDEN)
    assert drawn("figure-15", 50) not in (drawn("figure-15", 50, seed=1), drawn("figure-15", 50, subset="eq-sd-2"))


def test_figure_15_has_the_captions_that_the_paper_prints() -> None:
    printed = """A painting of cat wearing a cap. A painting of cat wearing a crown. A pencil sketch of train.
        A Van Gogh post-impressionism painting of train. A painting of squirrel eating. A painting of fox eating.
        A photo of a blue desk. A photo of a brown desk. A photo of beach. A photo of beach at sunset."""
    figure, captions = known("figure-15"), set[str]()
    for row in figure.rows:
        captions |= {row.caption(dict(zip(row.words, chosen, strict=True))) for chosen in product(*row.words.values())}
    assert {f"{text.strip()}." for text in " ".join(printed.split()).split(".") if text} <= captions
    assert {"A photo of cat.", "An oil painting of bus.", "A photo of a house on a mountain at fog."} <= captions
    # 8 sets of objects and scenes in two styles, 4 scenes, 3 rows of attributes, as the figure lists them.
    assert [len(figure.of_kind(kind)) for kind in ("object", "scene", "attribute")] == [8, 4, 3]
    objects = 2 * (7 * 4 + 7 * 5 + 3 * 4 + 3 * 3 + 2 * 2 + 5 * 2 + 2 * 2 + 4 * 3)
    assert len(captions) == objects + (7 + 6 + 6 + 4) + (2 * 2 * 6 + 2 * 10 * 4 + 10 * 4)


def test_a_row_that_does_not_hang_together_is_refused(tmp_path: Path) -> None:
    rows = [{"kind": kind, "template": "A {thing}.", "changes": "thing", "words": WORDS} for kind in KINDS]
    CaptionVocabulary.model_validate({"rows": rows})
    path = tmp_path / "words.yaml"
    for change, message in (
        ({"template": "A {thing.__class__}."}, "each of its slots needs words"),
        ({"words": {"thing": ["cat"]}}, "needs two words that can differ"),
    ):
        path.write_text(json.dumps({"rows": [{**rows[0], **change}, *rows]}))
        with pytest.raises(WrongUse, match=rf"words\.yaml: not a vocabulary(.|\n)*{message}"):
            vocabulary.load_captions.__wrapped__(path)


def planned(generator: StableDiffusion, count: int) -> list[EditedCandidate]:
    return list(islice(generator.plan(), count))


def images(pairs: Sequence[Any]) -> list[Pixels]:
    assert all(isinstance(pair, Pair) for pair in pairs)
    return [frame.pixels for pair in pairs for frame in (pair.image0, pair.image1)]


def test_every_candidate_gets_its_pair_in_order_whatever_else_is_made(drawing_with: Any) -> None:
    generator = drawing_with(micro_batch=2)
    candidates = planned(generator, 4)
    pairs = list(generator.make(candidates))
    assert [(pair.key, pair.change) for pair in pairs] == [(planned.key, planned.change) for planned in candidates]
    whole = images(pairs)
    assert all(image.shape == (64, 64, 3) and image.dtype == np.uint8 for image in whole)
    # Tables of samples are read by their first row: the same names and types everywhere.
    shapes = [{name: type(value) for name, value in pair.provenance.items()} for pair in pairs]
    assert all(shape == shapes[0] for shape in shapes) and set(shapes[0].values()) <= {str, int, float}
    unfit = replace(candidates[0], captions1=("A photo of " + "very " * 80 + "red ball.",))
    rejected, *rest = generator.make([unfit, *candidates[1:3]])
    assert isinstance(rejected, Rejected) and rejected.reason == "caption-unfit"
    assert np.array_equal(images(rest), whole[2:6])


def test_either_image_can_be_the_edited_one(drawing_with: Any) -> None:
    generator = drawing_with()
    candidate = next(planned for planned in generator.plan() if planned.plain == 1)
    sides = {"captions0": candidate.captions1, "captions1": candidate.captions0}
    turned = replace(candidate, **sides, plain=0)
    (pair,), (mirrored,) = generator.make([candidate]), generator.make([turned])
    assert np.array_equal(pair.image0.pixels, mirrored.image1.pixels)
    assert np.array_equal(pair.image1.pixels, mirrored.image0.pixels)


def test_only_the_broken_is_rejected() -> None:
    first, second = np.random.default_rng(0).integers(0, 256, (2, 8, 8, 3), np.uint8)
    assert broken(first, second, True) == ""
    assert broken(first, second, False) == "not-finite"
    assert broken(first, first.copy(), True) == "identical"
    even = np.full((8, 8, 3), (200, 10, 30), np.uint8)
    assert broken(first, even, True) == broken(np.zeros_like(first), second, True) == "blank"
    almost = first.copy()
    almost[0, 0, 0] ^= 1
    assert broken(first, almost, True) == ""
