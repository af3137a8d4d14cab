"""Triplets by number, what the strict rules ask one at a time, the file of ratings, and what the card says of it."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from itertools import islice, product
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.generators.triplets.conftest import OWN, RATED, numbered, relations_of
from twinset.contracts.errors import WrongUse
from twinset.generators.triplets.draws import Draws
from twinset.generators.triplets.mining import BLOCK, Miner
from twinset.generators.triplets.published import PublishedRules
from twinset.generators.triplets.ratings import load_ratings, with_plurals
from twinset.generators.triplets.relations import Relations
from twinset.generators.triplets.source import Triplets
from twinset.generators.triplets.strict import StrictRules, judged
from twinset.shards.contracts import Context

DRAWS = Draws(3, "triplets")
DIGESTS = {"strict": "ea777f7f5eda34fd72d645663c888cc1", "published": "ba42b1fc185cb031578ca0e48b20eb27"}


def opened(stated: str = OWN, **settings: Any) -> Triplets:
    """The source at work on relations."""
    names = {"graphs": "graphs", "concreteness": Path("ratings.txt"), "licence": "CC0-1.0", **settings}
    source: Triplets = Triplets(kind="genecis-triplets", **names).open(Context("triplets", seed=5))
    vars(source)["_miner"] = StrictRules(relations_of(stated), RATED, 4.6, 5, 1, source.distractors)
    return source


def miner(stated: str, rules: str = "strict", threshold: float = 4.6, min_images: int = 5, **settings: bool) -> Miner:
    if rules == "published":
        return PublishedRules(relations_of(stated), RATED, threshold, min_images)  # without plurals
    return StrictRules(relations_of(stated), RATED, threshold, min_images, 1, **settings)


@pytest.mark.parametrize("rules", DIGESTS)
def test_any_split_gives_the_same_triplets_and_more_keep_the_first(rules: str) -> None:
    last = BLOCK + 77
    whole = miner(OWN, rules, distractors=True).mine(DRAWS, 0, last)
    assert whole["passes"].all()
    again = miner(OWN, rules, distractors=True)
    split = [again.mine(DRAWS, *ends) for ends in ((BLOCK - 1, last), (5, BLOCK - 1), (0, 5))]
    assert whole.equals(pl.concat(split[::-1]))
    assert whole[:BLOCK].equals(next(again.stream(DRAWS)))
    for draws in (Draws(4, "triplets"), Draws(3, "another stage")):
        assert (again.mine(draws, 0, 1000)["reference"] != whole["reference"][:1000]).mean() > 0.5
    # A change to what is drawn raises the source's version, then this digest.
    parts = whole[:5000].select("number", pl.col("reference", "target", "distractor").cast(pl.Int32), "concreteness")
    drawn = hashlib.blake2b(b"".join(column.to_numpy().tobytes() for column in parts), digest_size=16)
    assert (Triplets.version, drawn.hexdigest()) == (8, DIGESTS[rules])


def test_strict_triplets_are_drawn_by_their_chances() -> None:
    """Counted from the list itself. Captions of ideas comment; no target is worn, and none is a new kind of place."""
    own, expected = dict[str, list[tuple[int, str, str, str]]](), dict[tuple[int, int], float]()
    for row, relation in enumerate(OWN.replace("glasses", "glass").split(", ")):
        image, subject, predicate, object_ = relation.split()
        if {subject, object_} <= RATED.keys() - {"idea"}:
            own.setdefault(subject, []).append((row, image, predicate, object_))
    for subject, relations in own.items():
        images, objects = {relation[1] for relation in relations}, Counter(relation[3] for relation in relations)
        for reference, target in product(relations, relations) if len(images) >= 5 and len(objects) >= 2 else ():
            unsaid = not any((image, object_) == (reference[1], target[3]) for _, image, _, object_ in relations)
            places = {"on", "in", "near", "behind"}
            fits = target[3] not in ("hat", "glass") and (target[2] not in places or reference[2] in places)
            rated = 2 * RATED[subject] + RATED[reference[3]] + RATED[target[3]] > 4 * 4.6 + 1e-9
            if unsaid and fits and rated:
                expected[reference[0], target[0]] = len(images) / len(relations) / len(objects) / objects[target[3]]
    table = miner(OWN).mine(DRAWS, 0, 200_000)
    counts = Counter(table.select("reference", "target").iter_rows())
    assert counts.keys() == expected.keys()
    for pair, weight in expected.items():
        mean = weight / sum(expected.values()) * 200_000
        assert abs(counts[pair] - mean) < 6 * mean**0.5 + 6


def test_a_limit_of_uses_holds_of_each_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    """A photo a relation. The first of too many uses is kept, so that more triplets keep those before."""
    monkeypatch.setattr("twinset.generators.triplets.mining.IN_A_ROW", 16)
    monkeypatch.setattr("twinset.generators.triplets.mining.BLOCK", 2048)  # refused draws lie on both sides of its end
    words = product(("on", "near", "riding", "chewing"), ("horse", "ball", "tree", "dog", "bird"))
    own = ", ".join(f"m{image} man {predicate} {object_}" for image, (predicate, object_) in enumerate(words))
    source = opened(own, max_uses=2)
    planned = list(islice(source.plan(), 128))
    assert {candidate.images[2] for candidate in planned} == {""}, "no distractor is asked for"
    for start in range(0, 128, 16):
        uses = Counter(part for candidate in planned[start : start + 16] for part in enumerate(candidate.images[:2]))
        assert max(uses.values()) == 2
    free = next(candidate for candidate in opened(own).plan() if candidate.number == planned[0].number)
    assert planned[0] == free and 0 < len(list(opened(max_uses=2).plan())) < 16
    assert not source.excluded, "what a limit refuses is not left out"


def test_where_nothing_can_pass_the_message_says_what_is_left_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WrongUse, match=r"0 eligible subjects.*min_images"):
        miner(OWN, min_images=1000)
    own = "a man with hat, a man on horse, a dog with hat, b tree with hat, c bird on horse"
    alike = miner(own, min_images=1, distractors=True)  # of one image, always
    monkeypatch.setattr("twinset.generators.triplets.mining.BLOCK", 64)
    with pytest.raises(WrongUse, match="no triplet in 64 times 1000 draws"):
        next(alike.stream(DRAWS))


RATINGS = {**RATED, **dict.fromkeys(("pair", "photo", "hand", "ground", "city", "son", "jacket", "frisbee"), 4.9)}
SAID = "a man on horse, b man near ball, c man under tree"
HEADER = "Word\tBigram\tConc.M\tConc.SD\n"
WORDS = "glass\t0\t4.82\t0.1\nglasses\t0\t4.86\t0.1\nHat\t0\t5\t0\nfire truck\t1\t4.9\t0.2\nthen\t0\t1.4\t0.9\n"


def mined(own: str, min_support: int = 1, ratings: dict[str, float] = RATINGS, **columns: list[Any]) -> list[int]:
    """The rows that are mined."""
    return judged(relations_of(own, **columns), ratings, min_support)[0]["row"].to_list()


def test_words_that_no_relation_is_mined_of() -> None:
    own = (
        "a man on horse, b pair of hat, b man for photo, b man with hand, b dog with dog, b man while dog, "
        "b man to tree, b man sit horse, b man around on horse, b man with ground, b ground near tree, "
        "b city with tree, b man visit tree, b man having ball, b son with ball"
    )
    assert mined(own) == [0]
    lemmas = ["be", "wear", "chew", "have"]  # verbs of the past tell stories, or were misread
    assert mined("a dog is ball, b man wore hat, c dog chewing ball, d man has dog", predicate_lemma=lemmas) == [2, 3]


def test_grammar_that_no_relation_is_mined_of() -> None:
    plain = {"subject_pos": "NOUN", "negated": False, "subject_start": 0, "verb": "", "confirmed": None}
    wrong = {"subject_pos": "PRON", "negated": True, "subject_start": 4, "verb": "look", "confirmed": False}
    for name in plain:
        assert mined("a man at tree, b dog at tree", **{name: [plain[name], wrong[name]]}) == [0], name
    columns = {"confirmed": [False, True], "plain": [True, False]}  # what a sentence begins with needs no parser more
    assert mined("a man on horse, b dog with ball", **columns) == [0, 1]


def test_captions_that_no_relation_is_mined_of() -> None:
    """Those that comment, or tell of what is drawn; "will" and "drawn" may be parts of words."""
    shown = ["the dog with 'a ball'", "a dog with a willow myrtle, drawnly", "a dog with a ball."]
    comments = [
        "PAINTINGS",
        "a dog, vector",
        "My dog with a ball",
        "Is this a dog?",
        "the dog ''with'' a ball",
        "a ... x",
    ]
    assert mined(numbered("a", "man on horse", 9), caption=[*shown, *comments]) == [0, 1, 2]


def test_support_counts_photos_of_what_conditions_say() -> None:
    """Of any subject: a dog's that one photo has counts for a man's that two have."""
    own = "a man on horse, a man riding horse, b dog with ball, c dog with ball, d tree with bird, e king with bird"
    assert mined(own, 2) == [2, 3]
    own = "a man on horse, b man near horse, c dog on horse, d man riding horse, e man have horse, f man chewing horse"
    own += ", g dog riding ball, h tree have ball"
    assert mined(own, 2) == [0, 3], "a verb needs photos, not of the same object, unless it is with"
    assert mined(own, 2, {**RATINGS, "riding": 2.9}) == [0], "raters call it abstract"
    kept = mined(f"{own}, i man riding ground, j man riding on ground", 2, plain=[True] * 10)
    assert (8 in kept, 9 in kept) == (False, True), "grounds are where, seldom what"


def triplets(own: Relations | str, silent: Sequence[tuple[str, str]] = (), **settings: Any) -> set[tuple[int, ...]]:
    """Rows of reference and target, and of the distractor where one is asked for."""
    relations = relations_of(own, silent) if isinstance(own, str) else own
    table = StrictRules(relations, RATINGS, 4.0, 1, 1, **settings).mine(Draws(1, "t"), 0, 400)
    parts = table.drop_nulls("passes").select("reference", "target", "distractor")
    return set((parts if settings else parts.drop("distractor")).iter_rows())


def test_subjects_have_one_number_and_captions_of_the_distractor_do_not_name_theirs() -> None:
    assert triplets("a man on horse, b men near ball, c man near tree") == {(0, 2), (2, 0)}
    own = "a man on horse, b man near tree, c bird near tree, d dog near tree, d ball behind man, e bird on horse"
    drawn = triplets(own, distractors=True)
    assert (0, 1, 2) in drawn and not {(0, 3), (1, 3)} & {parts[1:] for parts in drawn}


def test_other_names_and_what_implies_a_thing_bar_a_reference() -> None:
    assert (1, 0) in triplets(SAID, [("b", "The coward waits, unhorsed")])
    for caption in ("Look, horses!", "Two PONIES", "At the rodeo", "a jockey", "One horse-man."):
        assert triplets(SAID, [("b", caption)]) == triplets(SAID) - {(1, 0)}


def test_what_captions_leave_out_is_no_target() -> None:
    """Nothing that is worn, and a place only for references that say one; being in a hat is none."""
    for hat in ("with hat", "in hat"):
        assert triplets(f"a man riding horse, b man near ball, c man {hat}") == {(1, 0), (2, 0)}
    deeds = "a man on horse, b man near ball, c man wearing hat, d man chewing stick"
    assert triplets(deeds) == {(0, 1), (1, 0), (0, 3), (1, 3), (2, 3)}
    ends = "a man riding on horse, b man next to ball, d man chewing stick"
    assert triplets(ends) == {(0, 1), (1, 0), (0, 2), (1, 2)}


def test_ratings_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ratings.txt"
    expected = {"glass": 4.82, "glasses": 4.86, "hat": 5, "fire truck": 4.9, "then": 1.4}
    for content in (HEADER + WORDS, "\ufeff" + (HEADER + WORDS).replace("\n", "\r\n") + "\r\n"):
        path.write_text(content, "utf-8", newline="")
        assert load_ratings(path) == expected
    pytest.importorskip("inflect", reason="plurals of the published rules: pip install 'twinset[text]'")
    published = with_plurals(expected)
    assert [published[word] for word in ("glass", "glasses", "hats")] == [4.82, 4.82, 5.0], "plurals overwrite"


def test_a_file_of_another_shape_is_refused_with_its_place(tmp_path: Path) -> None:
    for content, message in (
        (b"word,conc\nhat,5\n", "has no columns 'Word' and 'Conc.M'"),
        (HEADER.encode(), "no word in it"),
        (f"{HEADER}{'z' * 300}\t0\t4.8\t0\n".encode(), "line 2: 'z{200}' rated 4.8"),
        (f"{HEADER}{WORDS}".encode() + b"caf\xe9\t0\t4.8\t0\n", "line 7: .*UTF-8"),
    ):
        (tmp_path / "ratings.txt").write_bytes(content)
        with pytest.raises(WrongUse, match=rf"ratings\.txt.*{message}"):
            load_ratings(tmp_path / "ratings.txt")
