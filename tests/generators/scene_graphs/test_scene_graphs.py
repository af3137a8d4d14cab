"""What the grammar says of relations, and which names are of one photo.
Relations in batches are those of ``sng_parser.parse`` on one caption at a time.

Scene graphs as a table source: a candidate a caption, a row a relation.
"""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.tokens import Doc

from tests.generators.finished_stage import finish
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Rejected, TableRows
from twinset.generators.captions.tables import Caption, caption_source
from twinset.generators.scene_graphs import relations, source
from twinset.generators.scene_graphs.relations import (
    BATCH,
    Relation,
    SceneGraphParser,
    grammar_of,
    parser_of,
    single_spaced,
)
from twinset.generators.scene_graphs.source import SPANS, TEXTS, WORDS, SceneGraphs
from twinset.models.spacy_pipelines import find_pipeline
from twinset.shards.contracts import Context

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
        (SITS, 1, "with", 4, {"negated": True, "verb": "", "subject_number": "singular", "object_pos": "NOUN"}),
        (WEARS, 1, "wearing", 5, {"negated": True, "verb": ""}),
        (WEARS.replace("not/neg", "now/advmod"), 1, "wearing", 5, {"negated": False}),
        (LOOKS, 0, "at", 4, {"verb": "look", "subject_number": "plural", "contested": False}),
        (LOOKS, 0, "look at", 4, {"verb": ""}),
        (BEHIND, 0, "with", 2, {"backdrop": True}),
        (BEHIND, 0, "near", 2, {"backdrop": False}),
        (BEHIND.replace("background", "park"), 0, "with", 2, {"backdrop": False}),
        (HOLDS, 0, "in", 5, {"contested": True, "verb": "holds"}),
        (HOLDS, 0, "holds", 3, {"contested": False}),
        (JACKET, 2, "holding", 5, {"contested": True}),
        (HAT, 0, "with", 6, {"contested": True}),
        (HAT, 0, "in", 3, {"contested": False}),
        (WOMEN, 2, "holding", 4, {"contested": True}),
        (WOMEN, 0, "holding", 4, {"contested": True}),
        (TOY, 0, "with", 4, {"contested": True}),
        (TOY.replace("toy/", "red/"), 0, "with", 4, {"contested": False}),
        (HOT, 1, "with", 3, {"contested": True}),
        (ROCK, 0, "climbs", 2, {"contested": True}),
        (ROCK.replace("climbing/amod/4/VERB", "and/cc/2/CCONJ"), 0, "climbs", 2, {"contested": False}),
        (BLOWS, 0, "blows", 3, {"contested": True}),
        (TAKES, 0, "takes", 2, {"contested": True}),
        (SITS_DOWN, 0, "on", 4, {"contested": False}),
        (CUP, 1, "holds", 4, {"contested": True, "stand_in": False, "plain": True}),
        (CUP.replace("of/", "'s/"), 1, "holds", 4, {"contested": True}),
        (CUP.replace("of/", "near/"), 1, "Holds", 4, {"contested": False, "plain": True}),
        (CUP.replace("a/det", "young/amod"), 1, "holds", 4, {"stand_in": True}),
        (CUP.replace("a/det", "her/poss"), 1, "holds", 4, {"stand_in": False}),
        (CUP.replace("the/det", "the/x").replace("cup/", "person/"), 1, "holds", 4, {"stand_in": True}),
        (CUP, 1, "with", 4, {"plain": False}),
    ],
)
def test_grammar(tree: str, subject: int, predicate: str, object_: int, expected: dict[str, object]) -> None:
    doc = doc_of(tree)
    one, other = (doc[doc[head].left_edge.i : head + 1] for head in (subject, object_))
    found = grammar_of(one, predicate, other)._asdict()
    assert {name: found[name] for name in expected} == expected


def test_a_pipeline_without_a_parser_is_refused(tmp_path: Path) -> None:
    import spacy

    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(WrongUse, match="gives no dependencies, no parts of speech, no lemmas"):
        SceneGraphParser(find_pipeline(str(tmp_path / "blank")))
    shutil.copytree(find_pipeline().source, tmp_path / "broken")
    for broken in ("trainable_lemmatizer/trees", "vocab/vectors", "parser/model"):  # the first fails in use alone
        file = tmp_path / "broken" / broken
        if broken.endswith("trees"):
            file.unlink()
        else:
            file.write_bytes(b"")
        with pytest.raises(WrongUse, match=r"broken: spaCy cannot load it .*install it again"):
            SceneGraphParser(find_pipeline(str(tmp_path / "broken")))


def test_verbs_that_may_be_nouns_are_read_as_verbs(small_parser: SceneGraphParser) -> None:
    captions = (
        "A fox pounces on a vole in the snow", "The preacher preaches to a small crowd",
        "A hiker treks up a rocky trail",
        "A baby naps on her father's chest", "A boy vaults over a low gate", "A bird nests under the roof",
        "Two men box in a ring", "Some children wade in the creek", "Three women shop for shoes",
        "A woman in a robe irons a shirt", "An old lady in a straw hat waters her roses",
        "Black cows graze beside a barn",
    )  # fmt: skip
    for doc in small_parser.docs(captions):
        (root,) = [token for token in doc if token.head == token]
        subjects = [token.lemma_ for token in root.children if token.dep_ == "nsubj"]
        assert root.pos_ == "VERB" and len(subjects) == 1, doc.text


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


def graphs(*captions: Path, **settings: Any) -> SceneGraphs:
    source = SceneGraphs.model_validate({"kind": "scene-graphs", "captions": list(map(str, captions)), **settings})
    return source.open(Context("scene-graphs"))


def test_rows_are_the_relations_of_the_captions(own_tsv: Path, small_parser: SceneGraphParser, tmp_path: Path) -> None:
    captions = [one for one in caption_source(own_tsv).read() if isinstance(one, Caption)]
    found = list(small_parser.relations([one.caption for one in captions]))
    expected = [
        (*(getattr(c, name) for name in TEXTS), *r[:-1])
        for c, relations in zip(captions, found, strict=True)
        for r in relations
    ]
    earlier = finish(graphs(own_tsv), tmp_path)
    rows = earlier.read((*TEXTS, *WORDS, *SPANS)).to_pylist()
    assert [tuple(row.values()) for row in rows] == expected
    assert earlier.record.planned == len(captions) > earlier.record.kept > 3 * BATCH
    assert earlier.record.kept == sum(bool(relations) for relations in found)


def test_a_caption_without_relations_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text('{"caption": "dogs", "image": "1"}\n{"caption": "a dog on a sofa", "image": "2"}\n')
    made = graphs(path)
    without, found = made.make(list(made.plan()))
    assert isinstance(without, Rejected) and (without.reason, without.detail) == ("no-relation", "1\tdogs")
    assert isinstance(found, TableRows) and [row["object"] for row in found.rows] == ["sofa"]


def test_ids_with_tabs_and_line_breaks_name_one_photo_in_rows_and_rejections(tmp_path: Path) -> None:
    path, odd = tmp_path / "c.jsonl", "a\tb\nc\u2028d.jpg"
    texts = ("dogs\tand cats", "a dog on a sofa")
    path.write_text("\n".join(json.dumps({"caption": text, "image": odd}) for text in texts))
    made = graphs(path)
    without, found = made.make(list(made.plan()))
    assert isinstance(without, Rejected) and isinstance(found, TableRows)
    (row,) = found.rows
    # The triplets' rules look for the photo of a rejection before its first tab (`generators.triplets.relations`).
    assert without.detail.partition("\t") == (row["photo"], "\t", "dogs\tand cats")
    assert row["image_id"] == odd


def test_a_second_parser_says_which_relations_it_finds_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.jsonl"
    captions = ["a man on a horse with a hat", "a dog on a sofa", "dogs"]
    lines = (json.dumps({"caption": caption, "image": str(number)}) for number, caption in enumerate(captions))
    path.write_text("\n".join(lines))
    made = graphs(path, confirm="en_ewt_sm")
    assert made.weights() == {"pipeline": find_pipeline().digest, "confirm": find_pipeline("en_ewt_sm").digest}

    class Other:
        def relations(self, captions: list[str]) -> Iterator[list[Relation]]:
            for found in parser_of(find_pipeline()).relations(captions):
                yield [one._replace(subject_lemma="x") for one in found if one.object != "hat"]

    monkeypatch.setattr(source, "parser_of", lambda one: Other() if one.name == "en_ewt_sm" else parser_of(one))
    rows = [row for one in made.make(list(made.plan())) if isinstance(one, TableRows) for row in one.rows]
    assert {(row["object"], row["confirmed"]) for row in rows} == {("horse", True), ("hat", False), ("sofa", True)}
    alone = graphs(path)
    rows = [row for one in alone.make(list(alone.plan())) if isinstance(one, TableRows) for row in one.rows]
    assert {row["confirmed"] for row in rows} == {None}


def test_duplicated_ids_are_refused(tmp_path: Path) -> None:
    tokens = [f"{n}.jpg#{k}\ta dog on a sofa\n" for n in range(5) for k in range(3)]
    path = tmp_path / "t.txt"
    path.write_text("".join([*tokens, tokens[4]]))
    twice = r"t\.txt line 16: caption id '1\.jpg#1' is duplicated; ids tell"
    with pytest.raises(WrongUse, match=twice):
        list(graphs(path).plan())


def test_several_files_are_one_source(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": 1, "caption": "a dog on a sofa", "image": "1"}))
    made = graphs(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert [one.caption_id for one in made.plan()] == ["a/1", "b/1"]
    one = SceneGraphs.model_validate({"kind": "scene-graphs", "captions": str(tmp_path / "a.jsonl")})
    assert one.captions == (tmp_path / "a.jsonl",) and [name for name, _, _ in one.places()] == ["captions"]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        (
            {"captions": "gone.tsv"},
            r"graphs\.source\.captions: there is no file or folder .*gone\.tsv; name it",
        ),
        ({"captions": "photo.jpg"}, r"stages\.graphs\.source\.captions: .*photo\.jpg: captions of an unknown kind"),
        ({"pipeline": "en_core_web_zz"}, r"stages\.graphs\.source\.pipeline: .*neither an installed package nor"),
        ({"confirm": "en_core_web_zz"}, r"stages\.graphs\.source\.confirm: .*neither an installed package nor"),
        ({"confirm": "en_captions_sm"}, r"stages\.graphs\.source\.confirm: .*name another pipeline, or leave confirm"),
    ],
)
def test_inputs_are_checked_before_any_work(tmp_path: Path, settings: dict[str, str], problem: str) -> None:
    (tmp_path / "photo.jpg").write_bytes(b"\xff")
    (tmp_path / "c.tsv").write_text("a dog\thttp://example.org/1.jpg\n")
    captions = tmp_path / settings.pop("captions", "c.tsv")
    source = graphs(captions, **settings)
    with pytest.raises(WrongUse, match=problem):
        source.check_inputs("stages.graphs.source", ("annotations", "media", "models"))
