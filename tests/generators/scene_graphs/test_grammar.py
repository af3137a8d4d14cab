"""What the grammar says of relations, and which names are of one photo."""

import pytest
import spacy
from spacy.tokens import Doc

from twinset.generators.scene_graphs.relations import PLURAL, SINGULAR, grammar_of
from twinset.generators.scene_graphs.source import photo_of

VOCAB = spacy.blank("en").vocab

#: Trees as a parser gives them: word, dependency, place of the head, part of speech.
SITS = "a/det/1/DET boy/nsubj/5/NOUN with/prep/1/ADP no/det/4/DET shirt/pobj/2/NOUN sits/ROOT/5/VERB"
WEARS = "a/det/1/DET boy/nsubj/4/NOUN is/aux/4/AUX not/neg/4/PART wearing/ROOT/4/VERB hats/dobj/4/NOUN"
LOOKS = "girls/nsubj/1/NOUN look/ROOT/1/VERB at/prep/1/ADP a/det/4/DET dog/pobj/2/NOUN"
BEHIND = "girl/ROOT/0/NOUN with/prep/0/ADP trees/pobj/1/NOUN in/prep/2/ADP the/det/5/DET background/pobj/3/NOUN"
HOLDS = "girl/nsubj/1/NOUN holds/ROOT/1/VERB a/det/3/DET kite/dobj/1/NOUN in/prep/1/ADP parks/pobj/4/NOUN"
JACKET = "man/ROOT/0/NOUN in/prep/0/ADP jackets/pobj/1/NOUN holding/acl/2/VERB a/det/5/DET cup/dobj/3/NOUN"
WOMEN = "women/nsubj/3/NOUN and/cc/0/CCONJ man/conj/0/NOUN holding/ROOT/3/VERB drinks/dobj/3/NOUN"
TOY = "dog/ROOT/0/NOUN with/prep/0/ADP a/det/4/DET toy/compound/4/NOUN cat/pobj/1/NOUN"
HOT = "hot/amod/1/ADJ dog/ROOT/1/NOUN with/prep/1/ADP onions/pobj/2/NOUN"
ROCK = "boy/nsubj/1/NOUN climbs/ROOT/1/VERB rock/dobj/1/NOUN climbing/amod/4/VERB walls/dobj/1/NOUN"
BLOWS = "man/nsubj/1/NOUN blows/ROOT/1/VERB out/prt/1/ADP fire/dobj/1/NOUN"
TAKES = "man/nsubj/1/NOUN takes/ROOT/1/VERB pizza/dobj/1/NOUN out/advmod/1/ADV"
SITS_DOWN = "man/nsubj/1/NOUN sits/ROOT/1/VERB down/prt/1/ADP on/prep/1/ADP chairs/pobj/3/NOUN"
CUP = "a/det/1/DET person/nsubj/2/NOUN holds/ROOT/2/VERB the/det/4/DET cup/dobj/2/NOUN of/prep/4/ADP tea/pobj/5/NOUN"
HAT = "man/ROOT/0/NOUN in/prep/0/ADP a/det/3/DET hat/pobj/1/NOUN with/prep/0/ADP a/det/6/DET cup/pobj/4/NOUN"


def doc_of(tree: str) -> Doc:
    words, deps, heads, pos = (list(one) for one in zip(*(one.split("/") for one in tree.split()), strict=True))
    tags = ["NNS" if word.endswith("s") else "VBG" if word.endswith("ing") else "NN" for word in words]
    places = [int(head) for head in heads]
    return Doc(VOCAB, words, tags=tags, pos=pos, lemmas=words, heads=places, deps=deps)


@pytest.mark.parametrize(
    ("tree", "subject", "predicate", "object_", "expected"),
    [
        (SITS, 1, "with", 4, {"negated": True, "verb": "", "subject_number": SINGULAR, "object_pos": "NOUN"}),
        (SITS.replace("no/", "a/"), 1, "with", 4, {"negated": False}),
        (WEARS, 1, "wearing", 5, {"negated": True, "verb": ""}),
        (WEARS.replace("not/neg", "now/advmod"), 1, "wearing", 5, {"negated": False}),
        (LOOKS, 0, "at", 4, {"verb": "look", "subject_number": PLURAL, "contested": False}),
        (LOOKS, 0, "look at", 4, {"verb": ""}),
        (BEHIND, 0, "with", 2, {"backdrop": True}),
        (BEHIND, 0, "near", 2, {"backdrop": False}),
        (BEHIND.replace("background", "park"), 0, "with", 2, {"backdrop": False}),
        (HOLDS, 0, "in", 5, {"contested": True, "verb": "holds"}),
        (HOLDS, 0, "holds", 3, {"contested": False}),
        (JACKET, 2, "holding", 5, {"contested": True}),
        (JACKET, 0, "in", 2, {"contested": False}),
        (HAT, 0, "with", 6, {"contested": True}),
        (HAT, 0, "in", 3, {"contested": False}),
        (WOMEN, 2, "holding", 4, {"contested": True}),
        (WOMEN, 0, "holding", 4, {"contested": True}),
        (TOY, 0, "with", 4, {"contested": True}),
        (TOY.replace("toy/", "red/"), 0, "with", 4, {"contested": False}),
        (HOT, 1, "with", 3, {"contested": True}),
        (ROCK, 0, "climbs", 2, {"contested": True}),
        (ROCK.replace("climbing/amod/4/VERB", "and/cc/2/CCONJ"), 0, "climbs", 2, {"contested": False}),
        (ROCK.replace("climbing/amod/4/VERB ", ""), 0, "climbs", 2, {"contested": True}),
        (BLOWS, 0, "blows", 3, {"contested": True}),
        (BLOWS.replace("out/prt", "now/advmod"), 0, "blows", 3, {"contested": False}),
        (TAKES, 0, "takes", 2, {"contested": True}),
        (SITS_DOWN, 0, "on", 4, {"contested": False}),
        (HOT.replace("hot/", "big/"), 1, "with", 3, {"contested": False}),
        (CUP, 1, "holds", 4, {"contested": True, "stand_in": False, "plain": True}),
        (CUP.replace("of/", "'s/"), 1, "holds", 4, {"contested": True}),
        (CUP.replace("of/", "near/"), 1, "Holds", 4, {"contested": False, "plain": True}),
        (CUP.replace("a/det", "young/amod"), 1, "holds", 4, {"stand_in": True}),
        (CUP.replace("a/det", "her/poss"), 1, "holds", 4, {"stand_in": False}),
        (CUP.replace("the/det", "the/x").replace("cup/", "person/"), 1, "holds", 4, {"stand_in": True}),
        (CUP, 1, "with", 4, {"plain": False}),
        (HAT, 0, "with", 6, {"plain": False}),
        (JACKET, 2, "holding", 5, {"plain": False}),
    ],
)
def test_grammar(tree: str, subject: int, predicate: str, object_: int, expected: dict[str, object]) -> None:
    doc = doc_of(tree)
    one, other = (doc[doc[head].left_edge.i : head + 1] for head in (subject, object_))
    found = grammar_of(one, predicate, other)._asdict()
    assert {name: found[name] for name in expected} == expected


def test_names_of_one_photo() -> None:
    names = ["1000268201.jpg", "1000268201_693b08cb0e.jpg", "1000268201_693b08cb0e_b.jpg"]
    assert {photo_of(name) for name in names} == {"1000268201.jpg"}
    address = "https://farm4.staticflickr.com/3201/1000268201_693b08cb0e_z.jpg"
    assert photo_of(address) == "1000268201.jpg"
    assert photo_of("1000268201_1692314159.jpg") == "1000268201.jpg"
    different = ("12_00000345.jpg", "1000268201_00000345.jpg", "1000268201_0000000345.jpg", "1_20230101.jpg")
    others = ("000000179765.jpg", "179765", "COCO_val2014_000000179765.jpg", "http://example.org/1_693b08cb0e.jpg")
    for other in (*different, *others, "1_1692314159.jpg"):
        assert photo_of(other) == other
