"""Twins in captions: true of one photo alone, within limits; dirty tables are refused."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Rejected
from twinset.contracts.recipe import parse_recipe
from twinset.generators.contract import check_source
from twinset.shards.contracts import Context
from twinset.stages.build import build_here
from twinset_extras.caption_twins.search import ARTICLES, WORD, span_of
from twinset_extras.caption_twins.source import CaptionTwins, TwinCandidate

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
RATINGS = "Word\tBigram\tConc.M\n" + "".join(
    f"{word}\t0\t{rating}\n"
    for word, rating in {
        "dog": 4.9,
        "cat": 4.9,
        "snow": 4.9,
        "grass": 4.9,
        "man": 4.8,
        "woman": 4.5,
    }.items()
)
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
}


def write(folder: Path, photos: dict[str, list[str]]) -> Path:
    folder.mkdir(exist_ok=True)
    lines = [
        {"id": f"{name}#{number}", "image": f"{name}.png", "caption": text}
        for name, texts in photos.items()
        for number, text in enumerate(texts)
    ]
    path = folder / "captions.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    (folder / "ratings.txt").write_text(RATINGS)
    return path


def source(captions: Path | Sequence[Path], **settings: Any) -> CaptionTwins:
    folder = captions.parent if isinstance(captions, Path) else captions[0].parent
    given = {"images": folder, "concreteness": folder / "ratings.txt", "licence": "CC0-1.0", **settings}
    return CaptionTwins(kind="caption-twins", captions=captions, **given)


def plan(settings: CaptionTwins, seed: int = 0) -> list[TwinCandidate]:
    return list(settings.open(Context("twins", seed=seed)).plan())


def words(planned: Sequence[TwinCandidate]) -> set[tuple[str, ...]]:
    return {tuple(sorted(one.words)) for one in planned}


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
        ("grass", "snow"), ("three", "two"), ("cats", "dogs"), ("man", "woman"), ("sitting", "standing")
    }  # fmt: skip
    kinds = {tuple(sorted(one.words)): one.change for one in planned}
    assert sorted(kinds.values()) == ["count", "object", "object", "place", "relation"]
    made = list(settings.open(Context("twins")).make(planned))
    assert all(isinstance(one, Pair) for one in made)
    (pair,) = (one for one in made if isinstance(one, Pair) and one.change == "place")
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
    assert words(plan(source(captions))) == {("three", "two"), ("sitting", "standing")}


def test_a_missing_image_is_said(captions: Path) -> None:
    (captions.parent / "snow.png").unlink()
    generator = source(captions).open(Context("twins"))
    reasons = [one.reason for one in generator.make(list(generator.plan())) if isinstance(one, Rejected)]
    assert reasons == ["missing-media"]


MANY = {f"{name}{n}": [f"A {name} runs in the snow"] for name in ("dog", "cat", "man") for n in range(12)}


def test_limits_of_images_and_words(tmp_path: Path) -> None:
    path = write(tmp_path, MANY)
    planned = plan(source(path, uses_of_image=3, uses_of_words=9, uses_of_word=14))
    assert len({one.key for one in planned}) == len(planned) > 15
    images = Counter(image for one in planned for image in (one.image0, one.image1))
    assert max(images.values()) <= 3
    pairs, single = (
        Counter(tuple(sorted(one.words)) for one in planned),
        Counter(w for one in planned for w in one.words),
    )
    assert max(pairs.values()) <= 9 and max(single.values()) <= 14
    groups = [one.group for one in planned]
    assert len({group for group, before in zip(groups, [None, *groups], strict=False) if group != before}) == len(
        set(groups)
    )
    of_image: dict[str, set[str]] = {}
    for one in planned:
        for image in (one.image0, one.image1):
            of_image.setdefault(image, set()).add(one.group)
    assert all(len(found) == 1 for found in of_image.values())
    assert {one.key for one in plan(source(path), seed=1)} != {one.key for one in plan(source(path))}


def test_what_captions_disagree_on_is_no_twin(tmp_path: Path) -> None:
    two = {"two": ["Two dogs sleep on a red blanket", "two dogs lie down", "four dogs on a blanket"]}
    three = {"three": ["Three dogs sleep on a red blanket", "three dogs lie on a blanket"]}
    assert words(plan(source(write(tmp_path, two | three)))) == {("three", "two")}
    two["two"].append("there are four dogs here")
    with pytest.raises(WrongUse, match="no captions of two photographs differ"):
        plan(source(write(tmp_path, two | three)))


def test_what_only_one_of_three_captions_says_is_no_twin(tmp_path: Path) -> None:
    photos = {"a": ["A dog sleeps on a red blanket", "fast asleep"], "b": ["A cat sleeps on a red blanket"]}
    assert words(plan(source(write(tmp_path, photos)))) == {("cat", "dog")}
    photos["a"].append("what a nap")
    with pytest.raises(WrongUse, match="no captions of two photographs differ"):
        plan(source(write(tmp_path, photos)))


def test_parsing_does_not_fill_the_memory(tmp_path: Path) -> None:
    path = write(tmp_path, {"a": ["A dog near qworbl runs in zzyxan"], "b": ["A cat near qworbl runs in zzyxan"]})
    generator = source(path).open(Context("twins"))
    planned = list(generator.plan())
    list(generator.make(planned))
    assert "qworbl" not in generator.parser.nlp.vocab.strings


@pytest.mark.parametrize(
    ("photos", "problem"),
    [
        ({"a": ["Un chien court dans la neige"], "b": ["Un chat court dans la neige"]}, "0 of 2 .* in English"),
        ({"a": ["一只狗在雪地里奔跑"], "b": ["一只猫在雪地里奔跑"]}, "0 of 2 .* in English"),
        ({str(n): ["A dog runs in the snow"] for n in range(5)}, "all 5 captions have the same words"),
        ({"a": ["A dog runs in the snow", "A dog runs in the grass"]}, "of one photograph"),
        ({"a": ["A dog runs in the snow"], "b": ["A puppy runs in the snow"]}, "no captions of two photographs differ"),
    ],
)
def test_captions_without_twins_are_refused(tmp_path: Path, photos: dict[str, list[str]], problem: str) -> None:
    with pytest.raises(WrongUse, match=problem):
        plan(source(write(tmp_path, photos)))


def test_repeated_ids_and_tables_without_images_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, PHOTOS)
    path.write_text(path.read_text() + path.read_text().splitlines()[0])
    with pytest.raises(WrongUse, match="'snow#0' is duplicated"):
        plan(source(path))
    path.write_text("".join(json.dumps({"id": n, "caption": f"a dog {n}"}) + "\n" for n in range(3)))
    with pytest.raises(WrongUse, match="nothing in it can be used"):
        plan(source(path))
    path = tmp_path / "addresses.tsv"
    path.write_text("".join(f"a {name} runs in the snow\thttps://x.example/{name}.jpg\n" for name in ("dog", "cat")))
    with pytest.raises(WrongUse, match="by address alone, such as https"):
        plan(source(path))


@pytest.mark.slow
def test_a_build_gives_the_same_pairs_in_other_shards(captions: Path, tmp_path: Path) -> None:
    raw = {**source(captions).model_dump(mode="json")}
    digests = []
    for shard_size in (2, 100):
        recipe = parse_recipe({"name": "t", "subsets": {"twins": {"source": raw, "shard_size": shard_size}}})
        out = tmp_path / str(shard_size)
        assert build_here(recipe, str(out), 1)["subsets"]["twins"]["kept"] == 5
        digests.append(sorted(one.name for one in out.rglob("*.tar")))
    assert len(digests[0]) > len(digests[1]) == 1


@pytest.mark.parametrize(
    ("files", "planned"),
    [
        (["flickr8k_token.txt"], {"object": 183, "place": 143, "relation": 47, "attribute": 50, "count": 33}),
        (["coco_captions_val2017.json"], {"object": 58, "place": 3, "attribute": 1, "count": 1}),
    ],
)
def test_twins_of_real_captions(files: list[str], planned: dict[str, int]) -> None:
    ratings = SHARED / "concreteness" / "Concreteness_ratings_Brysbaert_et_al_BRM.txt"
    if not ratings.exists():
        pytest.skip("the captions of ../shared/data are not here")
    found = plan(source([SHARED / "captions" / name for name in files], images=SHARED, concreteness=ratings))
    assert Counter(one.change for one in found) == planned
    for one in found:
        begins = [
            caption[: span_of(caption, word, one.start)[0]] for caption, word in zip(one.own, one.words, strict=True)
        ]
        assert len({tuple(w for w in WORD.findall(text.lower()) if w not in ARTICLES) for text in begins}) == 1
