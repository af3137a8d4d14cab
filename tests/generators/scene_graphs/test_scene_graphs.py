"""Scene graphs as a table source: the grammar of relations, a candidate a caption, a row a relation.

Relations in batches are those of ``sng_parser.parse`` on one caption at a time; tests/guard/test_oracles.py holds them
to it on real captions.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc

from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.generators.scene_graphs import source
from twinset.generators.scene_graphs.relations import (
    Relation,
    SceneGraphParser,
    grammar_of,
    parser_of,
    single_spaced,
)
from twinset.generators.scene_graphs.source import SceneGraphs
from twinset.models.spacy_pipelines import find_pipeline
from twinset.shards.contracts import Context

VOCAB = spacy.blank("en").vocab

#: Trees as a parser gives them: word, dependency, place of the head, part of speech.
SITS = "a/det/1/DET boy/nsubj/5/NOUN with/prep/1/ADP no/det/4/DET shirt/pobj/2/NOUN sits/ROOT/5/VERB"
WEARS = "a/det/1/DET boy/nsubj/4/NOUN is/aux/4/AUX not/neg/4/PART wearing/ROOT/4/VERB hats/dobj/4/NOUN"
BEHIND = "girl/ROOT/0/NOUN with/prep/0/ADP trees/pobj/1/NOUN in/prep/2/ADP the/det/5/DET background/pobj/3/NOUN"
HOLDS = "girl/nsubj/1/NOUN holds/ROOT/1/VERB a/det/3/DET kite/dobj/1/NOUN in/prep/1/ADP parks/pobj/4/NOUN"
JACKET = "man/ROOT/0/NOUN in/prep/0/ADP jackets/pobj/1/NOUN holding/acl/2/VERB a/det/5/DET cup/dobj/3/NOUN"
WOMEN = "women/nsubj/3/NOUN and/cc/0/CCONJ man/conj/0/NOUN holding/ROOT/3/VERB drinks/dobj/3/NOUN"
TOY = "dog/ROOT/0/NOUN with/prep/0/ADP a/det/4/DET toy/compound/4/NOUN cat/pobj/1/NOUN"
HOT = "hot/amod/1/ADJ dog/ROOT/1/NOUN with/prep/1/ADP onions/pobj/2/NOUN"
ROCK = "boy/nsubj/1/NOUN climbs/ROOT/1/VERB rock/dobj/1/NOUN climbing/amod/4/VERB walls/dobj/1/NOUN"
TAKES = "man/nsubj/1/NOUN takes/ROOT/1/VERB pizza/dobj/1/NOUN out/advmod/1/ADV"
CUP = "a/det/1/DET person/nsubj/2/NOUN holds/ROOT/2/VERB the/det/4/DET cup/dobj/2/NOUN of/prep/4/ADP tea/pobj/5/NOUN"


@pytest.fixture(scope="module")
def small_parser() -> SceneGraphParser:
    """The parser that all parsing in this process uses: it takes seconds to load."""
    return parser_of(find_pipeline())


def doc_of(tree: str) -> Doc:
    words, deps, heads, pos = map(list, zip(*(word.split("/") for word in tree.split()), strict=True))
    tags = ["NNS" if word.endswith("s") else "VBG" if word.endswith("ing") else "NN" for word in words]
    places = [int(head) for head in heads]
    return Doc(VOCAB, words, tags=tags, pos=pos, lemmas=words, heads=places, deps=deps)


@pytest.mark.parametrize(
    ("tree", "subject", "predicate", "object_", "expected"),
    [
        (SITS, 1, "with", 4, {"negated": True, "verb": "", "subject_number": "singular", "object_pos": "NOUN"}),
        (WEARS, 1, "wearing", 5, {"negated": True, "verb": ""}),
        (WEARS.replace("not/neg", "now/advmod"), 1, "wearing", 5, {"negated": False}),
        (BEHIND, 0, "with", 2, {"backdrop": True}),
        (BEHIND.replace("background", "park"), 0, "with", 2, {"backdrop": False}),
        (HOLDS, 0, "in", 5, {"contested": True, "verb": "holds"}),
        (HOLDS, 0, "holds", 3, {"contested": False}),
        (JACKET, 2, "holding", 5, {"contested": True}),
        (WOMEN, 2, "holding", 4, {"contested": True}),
        (TOY, 0, "with", 4, {"contested": True}),
        (HOT, 1, "with", 3, {"contested": True}),
        (ROCK, 0, "climbs", 2, {"contested": True}),
        (TAKES, 0, "takes", 2, {"contested": True}),
        (CUP, 1, "holds", 4, {"contested": True, "stand_in": False, "plain": True}),
        (CUP.replace("of/", "near/"), 1, "Holds", 4, {"contested": False, "plain": True}),
        (CUP.replace("a/det", "young/amod"), 1, "holds", 4, {"stand_in": True}),
        (CUP.replace("a/det", "her/poss"), 1, "holds", 4, {"stand_in": False}),
    ],
)
def test_grammar(tree: str, subject: int, predicate: str, object_: int, expected: dict[str, object]) -> None:
    doc = doc_of(tree)
    phrases = [doc[doc[head].left_edge.i : head + 1] for head in (subject, object_)]
    grammar = grammar_of(phrases[0], predicate, phrases[1])._asdict()
    assert {name: grammar[name] for name in expected} == expected


def test_a_pipeline_without_a_parser_is_refused(tmp_path: Path) -> None:
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(WrongUse, match="gives no dependencies, no parts of speech, no lemmas"):
        SceneGraphParser(find_pipeline(str(tmp_path / "blank")))


@pytest.mark.parametrize("blank", ["  ", "\t", "\u00a0", " \n "])
def test_blanks_change_no_relation_and_keep_their_places(small_parser: SceneGraphParser, blank: str) -> None:
    plain = "a man riding a horse next to two dogs on a bench ."
    captions = [plain, f"{blank}{plain.replace(' ', blank)}{blank}", plain.replace("riding a", f"riding{blank}a")]
    first, *others = small_parser.relations(captions)
    assert len(first) > 2
    for caption, relations_ in zip(captions[1:], others, strict=True):
        assert [(*row[:6], row.grammar) for row in relations_] == [(*row[:6], row.grammar) for row in first]
        for row, known in zip(relations_, first, strict=True):
            for start, end in ((6, 7), (8, 9)):
                phrase = caption[row[start] : row[end]]
                assert phrase == phrase.strip()
                assert single_spaced(phrase) == plain[known[start] : known[end]]


def test_words_of_captions_are_forgotten(small_parser: SceneGraphParser) -> None:
    strings = small_parser.nlp.vocab.strings
    before = len(strings)
    list(small_parser.relations([f"a blick{n} on a gronk{n}" for n in range(50)]))
    assert len(strings) == before


def graphs(*captions: Path, **settings: Any) -> SceneGraphs:
    source = SceneGraphs.model_validate({"kind": "scene-graphs", "captions": list(map(str, captions)), **settings})
    return source.open(Context("scene-graphs"))


def test_a_caption_without_relations_is_rejected_under_the_name_of_its_photo(tmp_path: Path) -> None:
    path, odd = tmp_path / "c.jsonl", "a\tb\nc\u2028d.jpg"
    texts = ("dogs\tand cats", "a dog on a sofa")
    path.write_text("\n".join(json.dumps({"caption": text, "image": odd}) for text in texts))
    generator = graphs(path)
    without, made = generator.make(list(generator.plan()))
    assert isinstance(without, Rejected) and isinstance(made, TableRows) and without.reason == "no-relation"
    (row,) = made.rows
    # The triplets' rules look for the photo of a rejection before its first tab (`generators.triplets.relations`).
    assert without.detail.partition("\t") == (row["photo"], "\t", "dogs\tand cats")
    assert (row["image_id"], row["object"]) == (odd, "sofa")


def test_a_second_parser_says_which_relations_it_finds_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.jsonl"
    captions = ["a man on a horse with a hat", "a dog on a sofa", "dogs"]
    lines = (json.dumps({"caption": caption, "image": str(number)}) for number, caption in enumerate(captions))
    path.write_text("\n".join(lines))
    confirmed = graphs(path, confirm="en_ewt_sm")
    assert confirmed.weights() == {"pipeline": find_pipeline().digest, "confirm": find_pipeline("en_ewt_sm").digest}

    class Second:
        def relations(self, captions: list[str]) -> Iterator[list[Relation]]:
            for parsed in parser_of(find_pipeline()).relations(captions):
                yield [relation._replace(subject_lemma="x") for relation in parsed if relation.object != "hat"]

    monkeypatch.setattr(source, "parser_of", lambda known: Second() if known.name == "en_ewt_sm" else parser_of(known))
    results = confirmed.make(list(confirmed.plan()))
    rows = [row for result in results if isinstance(result, TableRows) for row in result.rows]
    assert {(row["object"], row["confirmed"]) for row in rows} == {("horse", True), ("hat", False), ("sofa", True)}


def test_duplicated_ids_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("1.jpg#0\ta dog\n1.jpg#1\ta cat\n1.jpg#0\ta dog\n")
    with pytest.raises(WrongUse, match=r"t\.txt line 3: caption id '1\.jpg#0' is duplicated"):
        list(graphs(tmp_path / "t.txt").plan())


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"captions": "gone.tsv"}, r"captions: there is no file or folder .*gone\.tsv"),
        ({"pipeline": "en_core_web_zz"}, r"pipeline: .*neither an installed package nor"),
        ({"confirm": "en_captions_sm"}, r"confirm: .*name another pipeline, or leave confirm"),
    ],
)
def test_inputs_are_checked_before_any_work(tmp_path: Path, settings: dict[str, str], problem: str) -> None:
    (tmp_path / "c.tsv").write_text("a dog\thttp://example.org/1.jpg\n")
    captions = tmp_path / settings.pop("captions", "c.tsv")
    checked = graphs(captions, **settings)
    with pytest.raises(WrongUse, match=rf"stages\.graphs\.source\.{problem}"):
        checked.check_inputs("stages.graphs.source", ("annotations", "media", "models"))
