"""Twins in captions: true of one photo alone, within limits, and found as a plain double loop finds them."""

import json
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from tests.guard.test_oracles import at_hand
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Rejected
from twinset.generators.captions.tables import Caption
from twinset.generators.contract import check_source
from twinset.shards.contracts import Context
from twinset_extras.caption_twins import search
from twinset_extras.caption_twins.search import Captions, phrases_in, twins
from twinset_extras.caption_twins.source import CaptionTwins, TwinCandidate
from twinset_extras.caption_twins.vocabulary import vocabulary

RATED = {**dict.fromkeys(("dog", "cat", "snow", "grass"), 4.9), "man": 4.8, "woman": 4.5}
RATINGS = "Word\tBigram\tConc.M\n" + "".join(f"{word}\t0\t{rating}\n" for word, rating in RATED.items())
PHOTOS = {
    "snow": ["A dog runs in the snow.", "A dog in snow", "A happy dog is running through snow"],
    "grass": ["The dog runs in grass .", "A dog runs over a lawn", "A dog on the grass"],
    "two": ["Two dogs sleep on a red blanket.", "two dogs sleeping"],
    "three": ["Three dogs sleep on a red blanket.", "three dogs lie on a blanket"],
    "cat": ["Two cats sleep on a red blanket.", "cats on a blanket"],
    "man": ["A man is holding a red umbrella.", "a man with an umbrella"],
    "woman": ["A woman is holding a red umbrella.", "a woman with an umbrella"],
    "person": ["A person is holding a red umbrella.", "someone with an umbrella"],
    "both": ["A woman is holding a red umbrella.", "a woman beside a man with an umbrella"],
    "sits": ["A horse is sitting behind the barn.", "a horse sits"],
    "stands": ["A horse is standing behind the barn.", "a horse stands"],
    "front": ["A Bus in front of THE tennis-court"],
    "behind": ["a bus behind a tennis court"],
}


def write(folder: Path, photos: dict[str, list[str]]) -> Path:
    folder.mkdir(exist_ok=True)
    lines = [
        {"id": f"{name}#{number}", "image": f"{name}.png", "caption": text}
        for name, texts in photos.items()
        for number, text in enumerate(texts)
    ]
    path = folder / "captions.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "ratings.txt").write_text(RATINGS)
    return path


def source(captions: Path, **settings: Any) -> CaptionTwins:
    folder = captions.parent
    given = {"images": folder, "concreteness": folder / "ratings.txt", "licence": "CC0-1.0", **settings}
    return CaptionTwins(kind="caption-twins", captions=captions, **given)


def plan(settings: CaptionTwins, seed: int = 0) -> list[TwinCandidate]:
    return list(settings.open(Context("twins", seed=seed)).plan())


def words(planned: Sequence[TwinCandidate]) -> set[tuple[str, ...]]:
    return {tuple(sorted(twin.words)) for twin in planned}


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    path = write(tmp_path / "in", PHOTOS)
    for number, name in enumerate(PHOTOS):
        Image.new("RGB", (24, 16), (20 * number, 0, 0)).save(path.parent / f"{name}.png")
    return path


def test_twins_differ_in_a_word_that_is_true_of_one_photo(captions: Path) -> None:
    settings = source(captions, confirm="en_ewt_sm")
    settings.check_inputs("source", ("annotations", "media", "models"))
    check_source(settings, Context("twins"))
    planned = plan(settings)
    # Not man or woman and person, nor anything of the photo that shows a man beside a woman.
    assert words(planned) == {
        ("grass", "snow"), ("three", "two"), ("cats", "dogs"), ("man", "woman"), ("sitting", "standing"),
        ("behind", "in front of"),
    }  # fmt: skip
    kinds = {tuple(sorted(twin.words)): twin.change for twin in planned}
    assert sorted(kinds.values()) == ["count", "object", "object", "place", "relation", "relation"]
    (captions.parent / "cat.png").unlink()
    made = list(settings.open(Context("twins")).make(planned))
    (rejected,) = (sample for sample in made if not isinstance(sample, Pair))
    assert rejected.reason == "missing-media"
    (pair,) = (sample for sample in made if isinstance(sample, Pair) and sample.change == "place")
    assert sorted((pair.image0.source.path, pair.image1.source.path)) == ["grass.png", "snow.png"]
    assert {pair.captions0, pair.captions1} == {tuple(PHOTOS["snow"]), tuple(PHOTOS["grass"])}
    assert pair.provenance["set"] == "scenes" and str(pair.provenance["word0"]) in pair.captions0[0]


def test_a_word_that_plays_another_part_is_rejected(tmp_path: Path) -> None:
    path = write(tmp_path, {"a": ["A man in a cat mask waves to us"], "b": ["A man in a dog mask waves to us"]})
    generator = source(path).open(Context("twins"))
    (planned,) = generator.plan()
    assert planned.change == "object"
    (made,) = generator.make([planned])
    assert isinstance(made, Rejected) and made.reason == "other-role"


def test_unrated_and_abstract_words_are_left_out(captions: Path) -> None:
    assert ("man", "woman") in words(plan(source(captions, threshold=4.5)))
    assert ("man", "woman") not in words(plan(source(captions, threshold=4.6)))
    (captions.parent / "ratings.txt").write_text("Word\tBigram\tConc.M\nwool\t0\t4.5\n")
    assert words(plan(source(captions))) == {("three", "two"), ("sitting", "standing"), ("behind", "in front of")}


def test_limits_of_images_and_words(tmp_path: Path) -> None:
    runners = [(name, n) for name in ("dog", "cat", "man") for n in range(12)]
    path = write(tmp_path, {f"{name}{n}": [f"A {name} runs in the snow"] for name, n in runners})
    planned = plan(source(path, uses_of_image=3, uses_of_words=9, uses_of_word=14))
    assert len({twin.key for twin in planned}) == len(planned) > 15
    images = Counter(image for twin in planned for image in (twin.image0, twin.image1))
    assert max(images.values()) <= 3
    assert max(Counter(tuple(sorted(twin.words)) for twin in planned).values()) <= 9
    assert max(Counter(word for twin in planned for word in twin.words).values()) <= 14
    groups = {(image, twin.group) for twin in planned for image in (twin.image0, twin.image1)}
    assert len(groups) == len(images), "an image is in one group"
    assert {twin.key for twin in plan(source(path), seed=1)} != {twin.key for twin in plan(source(path))}


@pytest.mark.parametrize(
    ("first", "second", "against"),
    [
        (["Two dogs sleep", "two dogs lie down", "four dogs rest"], ["Three dogs sleep"], "there are four dogs"),
        (["A dog sleeps on a blanket", "fast asleep"], ["A cat sleeps on a blanket"], "what a nap"),
    ],
)
def test_what_captions_disagree_on_or_one_of_three_says_is_no_twin(
    tmp_path: Path, first: list[str], second: list[str], against: str
) -> None:
    assert len(plan(source(write(tmp_path, {"a": first, "b": second})))) == 1
    with pytest.raises(WrongUse, match="no captions of two photographs differ"):
        plan(source(write(tmp_path, {"a": [*first, against], "b": second})))


def test_captions_without_twins_are_refused(tmp_path: Path) -> None:
    for problem, photos in {
        "0 of 2 .* in English": {"a": ["一只狗在雪地里奔跑"], "b": ["一只猫在雪地里奔跑"]},
        "all 5 captions": {str(n): ["A dog runs in the snow"] for n in range(5)},
        "of one photograph": {"a": ["A dog runs in the snow", "A dog runs in the grass"]},
        "no captions of two": {"a": ["A dog runs in the snow"], "b": ["A puppy runs in the snow"]},
    }.items():
        with pytest.raises(WrongUse, match=problem):
            plan(source(write(tmp_path, photos)))


@pytest.mark.slow
def test_twins_of_flickr8k() -> None:
    captions = at_hand("captions")
    ratings = at_hand("concreteness") / "Concreteness_ratings_Brysbaert_et_al_BRM.txt"
    planned = plan(source(captions / "flickr8k_token.txt", images=captions, concreteness=ratings))
    changes = {"object": 183, "place": 143, "relation": 47, "attribute": 50, "count": 33}
    assert Counter(candidate.change for candidate in planned) == changes


def double_loop(captions: Sequence[str]) -> set[tuple[int, int]]:
    """Captions that differ in one word of the lists, by comparing all with all."""
    listed = vocabulary()
    number = {phrase: n for n, phrase in enumerate(listed.phrases)}
    texts = [[word for word in caption.split() if word not in ("a", "the")] for caption in captions]
    pairs = set()
    for (first, left), (second, right) in combinations(enumerate(texts), 2):
        differ = [words for words in zip(left, right, strict=False) if words[0] != words[1]]
        if len(left) == len(right) and len(differ) == 1 and all(word in number for word in differ[0]):
            numbers = tuple(number[word] for word in differ[0])
            if listed.twin[numbers] >= 0:
                pairs.add((first, second))
    return pairs


def test_neighbours_are_those_of_a_double_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(5)
    choices = (
        ("the", "a"), ("dog", "cat", "horse", "man", "cup"), ("runs", "sits", "sleeps"), ("in",), ("a", "the"),
        ("snow", "grass", "sand", "rain"), ("", "now"),
    )  # fmt: skip
    texts = [" ".join(str(random.choice(words)) for words in choices).strip() for _ in range(150)]
    captions = Captions(Caption(str(n), str(n), text, "", "") for n, text in enumerate(texts))
    monkeypatch.setattr(search, "WINDOW", 1000)
    listed = vocabulary()
    neighbours = search.neighbours(captions, phrases_in(captions, listed.phrases), listed, np.uint64(1))
    ordered = np.sort(np.concatenate([part.caption for part in neighbours]), axis=1)
    pairs = set(map(tuple, ordered.tolist()))
    assert pairs == double_loop(texts) and len(pairs) > 400
    kept = twins(captions, listed, np.ones(len(listed.phrases), np.bool_), np.uint64(1))
    assert set(map(tuple, np.sort(kept.caption, axis=1).tolist())) <= pairs and len(kept) > 300


def test_the_lists_say_what_excludes_what() -> None:
    listed = vocabulary()
    number = {phrase: n for n, phrase in enumerate(listed.phrases)}
    kinds = {
        "": "man guy, man person, man boy, dog cats, dog spaniel, sitting stands, brown tan, one single",
        "object": "dogs cats, men girls, canoe kayak",
        "attribute": "red blue",
    }
    for kind, pairs in kinds.items():
        for pair in pairs.split(", "):
            first, second = (number[word] for word in pair.split())
            lines = [listed.twin[first, second], listed.twin[second, first]]
            assert [listed.lines[line].kind if line >= 0 else "" for line in lines] == [kind] * 2, pair
