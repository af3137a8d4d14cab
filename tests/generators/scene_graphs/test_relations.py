"""Relations in batches are those of ``sng_parser.parse`` on one caption at a time."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from twinset.generators.captions.sources import caption_source
from twinset.generators.captions.tables import Caption
from twinset.generators.scene_graphs import relations
from twinset.generators.scene_graphs.relations import SceneGraphParser, places_in, single_spaced
from twinset.models.spacy_pipelines import find_pipeline

CAPTIONS = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "captions"
REAL = 5_000


@pytest.fixture(scope="module")
def one_by_one() -> Any:
    import sng_parser

    return sng_parser.Parser("spacy", model=find_pipeline().source)


def assert_equal(captions: Sequence[str], parser: SceneGraphParser, one_by_one: Any) -> int:
    """Whether everything about the relations of each caption is the same; returns how many there are."""
    count = 0
    for caption, found in zip(captions, parser.relations(captions), strict=True):
        graph = one_by_one.parse(single_spaced(caption))
        expected = []
        for relation in graph["relations"]:
            ends = [graph["entities"][relation[end]] for end in ("subject", "object")]
            words = (ends[0]["head"], relation["relation"], ends[1]["head"])
            lemmas = (ends[0]["lemma_head"], relation["lemma_relation"], ends[1]["lemma_head"])
            expected.append((*words, *lemmas, *(end["span"] for end in ends)))
        assert [
            (
                *(r.subject, r.predicate, r.object, r.subject_lemma, r.predicate_lemma, r.object_lemma),
                *(
                    single_spaced(caption[start:end])
                    for start, end in ((r.subject_start, r.subject_end), (r.object_start, r.object_end))
                ),
            )
            for r in found
        ] == expected, caption
        count += len(found)
    return count


@pytest.mark.slow
def test_relations_equal_those_of_one_caption_at_a_time(
    own_captions: list[str], small_parser: SceneGraphParser, one_by_one: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relations, "ZONE", 150)  # several of them, and batches that end before a zone does
    captions = own_captions[:10] + own_captions[10::4]
    assert assert_equal(captions, small_parser, one_by_one) > len(captions)


def test_a_known_caption(small_parser: SceneGraphParser) -> None:
    (found,) = small_parser.relations(["Two women are holding the dogs in front of a house."])
    assert (found[0].subject, found[0].predicate, found[0].object) == ("women", "holding", "dogs")
    assert (found[0].subject_lemma, found[0].predicate_lemma, found[0].object_lemma) == ("woman", "hold", "dog")
    assert (found[0][6:8], found[0][8:10]) == ((0, 9), (22, 30))


BLANKS = ("  ", "\t", "\u00a0", " \n ", "\u3000")


@pytest.mark.parametrize("blank", BLANKS)
def test_blanks_change_no_relation_and_keep_their_places(small_parser: SceneGraphParser, blank: str) -> None:
    plain = "a man riding a horse next to two dogs on a bench ."
    captions = [
        plain,
        plain.replace(" ", blank),
        f"{blank}{plain}{blank}",
        plain.replace("riding a", f"riding{blank}a"),
    ]
    found = list(small_parser.relations(captions))
    assert len(found[0]) > 2
    for caption, relations_ in zip(captions, found, strict=True):
        assert [(*one[:6], one.grammar) for one in relations_] == [(*one[:6], one.grammar) for one in found[0]]
        for one, known in zip(relations_, found[0], strict=True):
            for start, end in ((6, 7), (8, 9)):
                phrase = caption[one[start] : one[end]]
                assert phrase == phrase.strip()
                assert single_spaced(phrase) == plain[known[start] : known[end]]


def test_places_of_a_caption_with_one_blank_between_words_are_its_own() -> None:
    caption = "A dog, and a cat."
    assert places_in(caption) == [*range(len(caption) + 1)]
    assert places_in(" A  dog") == [1, 2, 4, 5, 6, 7]


def test_words_of_captions_are_forgotten(small_parser: SceneGraphParser) -> None:
    strings = small_parser.nlp.vocab.strings
    before = len(strings)
    list(small_parser.relations([f"a blick{n} on a gronk{n}" for n in range(500)]))
    assert len(strings) == before


@pytest.mark.slow
@pytest.mark.skipif(not CAPTIONS.is_dir(), reason="the captions of ../shared/data are not here")
def test_relations_of_real_captions_equal_those_of_one_at_a_time(
    small_parser: SceneGraphParser, one_by_one: Any
) -> None:
    captions: list[str] = []
    for name in ("cc3m_validation.tsv", "coco_captions_val2017.json", "flickr8k_token.txt"):
        read = [one.caption for one in caption_source(CAPTIONS / name).read() if isinstance(one, Caption)]
        captions += read[:: 3 * len(read) // REAL]
    assert len(captions) >= REAL
    assert assert_equal(captions, small_parser, one_by_one) > REAL
