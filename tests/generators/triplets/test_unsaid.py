"""What captions leave out: other names of things, words that imply them, and how many photos show them unsaid."""

import numpy as np
import pyarrow as pa
import pytest

from tests.generators.triplets.conftest import RATED, Said, relations_of
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe.strict_yaml import load_yaml
from twinset.generators.triplets.captions import FILE, PRIOR, Spoken, concepts, forms_of, mentions_of, not_repeated
from twinset.generators.triplets.draws import NONE, Draws
from twinset.generators.triplets.mining import Miner
from twinset.generators.triplets.pool import Pool
from twinset.generators.triplets.ratings import Ratings

RATINGS = Ratings({**RATED, "jacket": 4.9, "frisbee": 4.9}, RATED)


def miner(said: list[Said], others: list[tuple[str, str]], max_unsaid: float = 1.0) -> Miner:
    return Miner(Pool(relations_of(said, others), RATINGS, "strict", 1), 4.0, False, max_unsaid)


def triplets(said: list[Said], others: list[tuple[str, str]], max_unsaid: float = 1.0) -> set[tuple[int, int]]:
    table = miner(said, others, max_unsaid).mine(Draws(1, "t"), 0, 400)
    assert set(table.distractor.tolist()) == {NONE}
    return set(zip(table.reference.tolist(), table.target.tolist(), strict=True))


def test_lists_of_words() -> None:
    """Every line has both halves and no word twice, and a word of two lines has the names of both."""
    of = concepts().by_noun
    for line in load_yaml(FILE.read_text("utf-8"))["concepts"]:
        names, others = (part.split() for part in line.split(":"))
        assert names and len({*names, *others}) == len(names) + len(others), line
        assert all({*names} <= of[name].names and {*others} <= of[name].implied_by for name in names)
    assert {"bicycle", "bike"} <= of["bike"].names and of["bike"] == of["bicycle"]
    assert {"stool", "park"} <= of["bench"].names | of["bench"].implied_by
    assert concepts().of_noun("zyzzyva").names == {"zyzzyva"}
    assert forms_of(frozenset({"pony"})) == {"pony", "ponys", "ponyes", "ponies"}


SAID: list[Said] = [("a", "man", "on", "horse"), ("b", "man", "near", "ball"), ("c", "man", "with", "hat")]


@pytest.mark.parametrize("caption", ["Two PONIES", "At the rodeo", "a jockey"])
def test_other_names_and_what_implies_a_thing_bar_a_reference(caption: str) -> None:
    assert (1, 0) in triplets(SAID, [("b", "The coward waits")])
    assert triplets(SAID, [("b", caption)]) == triplets(SAID, []) - {(1, 0)}


def test_two_captions_of_a_target_name_both_words_where_it_has_three(monkeypatch: pytest.MonkeyPatch) -> None:
    """One caption in three that alone names a horse is not believed; one in two is."""
    others = [("a", "A guy rides"), ("a", "A gentleman waits")]
    assert (1, 0) in triplets(SAID, others), "where no photo has as many, or a few"
    monkeypatch.setattr("twinset.generators.triplets.captions.PHOTOS", 1)
    assert (1, 0) in triplets(SAID, others[:1])
    assert (1, 0) not in triplets(SAID, others)
    assert (1, 0) in triplets(SAID, [("a", "A guy rides a pony"), *others[1:]])
    assert (1, 0) not in triplets(SAID, [("a", "A pony"), ("a", "Look, a pony")])


def test_estimate_of_what_is_unsaid(monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: 40 photos of three captions; noun 1 is one caption's in 10, two captions' in 4, all three's in 6."""
    times = {0: [3] * 30, 1: [1] * 10 + [2] * 4 + [3] * 6}
    named = [photo << 32 | noun for noun, counts in times.items() for photo, n in enumerate(counts) for _ in range(n)]
    monkeypatch.setattr("twinset.generators.triplets.captions.PHOTOS", 40)
    few = [40 << 32 | 1]  # of a photo of two captions, which is not counted
    found = mentions_of(np.sort(np.array([-1, *named, *few])), np.array([3] * 40 + [2]), 3)
    assert found is not None
    odds = [(PRIOR**2 / 2) / 30, ((10 + PRIOR) ** 2 / (2 * 5)) / 20, PRIOR**2 / 2]
    assert found.odds.tolist() == pytest.approx(odds)
    subject, object_ = np.array([0, 1, 0], dtype=np.int32), np.array([1, 0, 2], dtype=np.int32)
    # 20 of the 30 photos that say 0 say 1 as well; 10 do not. All that say 1 say 0; none says 2.
    assert found.unsaid(subject, object_).tolist() == pytest.approx([min(20 * odds[1] / 10, 1), 1, 0])
    assert mentions_of(np.sort(np.array(named)), np.array([3] * 39 + [2, 2]), 3) is None


def shown(name: str, photos: int, times: int) -> list[tuple[str, str]]:
    """Two captions more of photos of men, so that as many of the three name a thing; all of them name the man."""
    texts = ["A man x" + f" {name}" * (times > 1), "A man y" + f" {name}" * (times > 2)]
    return [(f"{name}{n}", text) for n in range(photos) for text in texts]


def test_what_captions_leave_out_is_no_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """Frisbees are named by all three captions, jackets by one: as many men again wear one unsaid."""
    monkeypatch.setattr("twinset.generators.triplets.captions.PHOTOS", 41)
    said: list[Said] = [(f"frisbee{n}", "man", "with", "frisbee") for n in range(20)]
    said += [(f"jacket{n}", "man", "with", "jacket") for n in range(20)] + [("ball0", "man", "with", "ball")]
    others = shown("frisbee", 20, 3) + shown("jacket", 6, 2) + shown("jacket", 20, 1)[12:] + shown("ball", 1, 1)
    targets = {said[target][3] for _, target in triplets(said, others, 0.3)}
    assert targets == {"frisbee"}
    strict = miner(said, others, 0.3).rules
    assert strict.estimated and sorted(strict.reliable.tolist()) == [False, False, True]  # type: ignore[union-attr]
    with pytest.raises(WrongUse, match=r"captions leave out too much .*\(max_unsaid 0\).* or raise max_unsaid"):
        miner(said, others, 0.0)


def test_one_caption_a_photo_tells_nothing_of_what_is_unsaid() -> None:
    """So nothing that is worn is a target's, and a place only for references that say one; being in a hat is none."""
    rules = miner(SAID, [], 0.0).rules
    assert not rules.estimated and sorted(rules.reliable.tolist()) == [False, True, True]  # type: ignore[union-attr]
    every = {(one, other) for one in range(3) for other in range(3) if one != other}
    for predicate in ("with", "in"):
        said: list[Said] = [*SAID[:2], ("c", "man", predicate, "hat")]
        assert triplets(said, []) == every, "where no limit is set"
        assert triplets(said, [], 0.99) == {(0, 1), (1, 0)}
    deeds: list[Said] = [*SAID[:2], ("c", "man", "wearing", "hat"), ("d", "man", "chewing", "stick")]
    assert triplets(deeds, [], 0.99) == {(0, 1), (1, 0), (0, 3), (1, 3), (2, 3)}
    ends: list[Said] = [("a", "man", "riding on", "horse"), ("b", "man", "next to", "ball"), deeds[3]]
    assert triplets(ends, [], 0.99) == {(0, 1), (1, 0), (0, 2), (1, 2)}


def test_one_caption_under_two_data_sets_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinset.generators.triplets.captions.PHOTOS", 1)
    photos = np.array([0, 0, 1, 0, 1], dtype=np.int32)
    captions = pa.chunked_array([["A man .", "a  man", "A man."], ["A man on a horse", "A man!"]])
    assert not_repeated(photos, captions).tolist() == [True, False, True, True, False]
    for last, known in (("A MAN", False), ("Two men", True)):
        three = pa.chunked_array([*captions.chunks, [last]])
        spoken = Spoken(["man"], {("man", "man")}, np.append(photos, np.int32(0)), three)
        assert (spoken.mentions is not None) == known
