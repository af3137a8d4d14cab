"""Trees that the pipeline for captions learns from: converted, rewritten, of the grammar, and agreed on."""

import random
from pathlib import Path

import pytest
import spacy
from spacy.tokens import Doc

from studies.caption_parser import pipeline
from studies.caption_parser.__main__ import main
from studies.caption_parser.agreement import is_plausible, same_tree
from studies.caption_parser.conversion import read_treebank
from studies.caption_parser.corpus import part
from studies.caption_parser.grammar import captions
from studies.caption_parser.inflection import article, participle, past, plural, third_person
from studies.caption_parser.rewriting import rewrite
from studies.caption_parser.trees import Sentence, as_doc, documents, is_tree
from twinset.contracts.errors import WrongUse

# Written for this test: "He was on the old bridge in front of Ada Lovelace's house and waved."
TREEBANK = """
# text = He was on the old bridge in front of Ada Lovelace's house and waved.
1	He	he	PRON	PRP	_	6	nsubj	_	_
2	was	be	AUX	VBD	_	6	cop	_	_
3	on	on	ADP	IN	_	6	case	_	_
4	the	the	DET	DT	_	6	det	_	_
5	old	old	ADJ	JJ	_	6	amod	_	_
6	bridge	bridge	NOUN	NN	_	0	root	_	_
7	in	in	ADP	IN	_	13	case	_	_
8	front	front	NOUN	NN	_	7	fixed	_	_
9	of	of	ADP	IN	_	7	fixed	_	_
10	Ada	Ada	PROPN	NNP	_	13	nmod:poss	_	_
11-12	Lovelace's	_	_	_	_	_	_	_	_
11	Lovelace	Lovelace	PROPN	NNP	_	10	flat	_	SpaceAfter=No
12	's	's	PART	POS	_	10	case	_	_
13	house	house	NOUN	NN	_	6	nmod	_	_
14	and	and	CCONJ	CC	_	15	cc	_	_
15	waved	wave	VERB	VBD	_	6	conj	_	SpaceAfter=No
16	.	.	PUNCT	.	_	6	punct	_	_
"""


def arcs(sentence: Sentence) -> list[str]:
    return [f"{token.form} {token.label} {sentence[token.head].form}" for token in sentence]


@pytest.fixture
def converted(tmp_path: Path) -> Sentence:
    (tmp_path / "en_x-ud-train.conllu").write_text(TREEBANK)
    (sentence,) = part(tmp_path, "train")
    return sentence


def test_conversion(converted: Sentence, tmp_path: Path) -> None:
    assert arcs(converted) == [
        "He nsubj was", "was ROOT was", "on prep was", "the det bridge", "old amod bridge", "bridge pobj on",
        "in prep bridge", "front pobj in", "of prep front", "Ada compound Lovelace", "Lovelace poss house",
        "'s case Lovelace", "house pobj of", "and cc was", "waved conj was", ". punct was",
    ]  # fmt: skip
    with pytest.raises(WrongUse, match=r"0 files \*-ud-dev\.conllu; give the folder of one UD English treebank"):
        part(tmp_path, "dev")
    line = "1\tA\ta\tNOUN\tNN\t_\t0\troot\t_\t_\n\n"
    for broken, words in (
        (b"1\tA\n", "broken:1: 2 columns, CoNLL-U has 10"),
        (line.replace("0", "_").encode(), "broken:1: .* head '_' are not a word's"),
        (line.replace("0", "7").encode(), "broken:2: head 7 of a sentence of 1 words"),
        (line.replace("NOUN", "THING").encode(), "broken:1: .*'THING'"),
        (b"\xff" + line.encode(), "broken: not UTF-8"),
    ):
        (tmp_path / "broken").write_bytes(broken)
        with pytest.raises(WrongUse, match=words):
            list(read_treebank(tmp_path / "broken"))
    (tmp_path / "marked").write_bytes(b"\xef\xbb\xbf" + line.replace("A", "a\u2028b").encode())
    assert [word.form for sentence in read_treebank(tmp_path / "marked") for word in sentence] == ["a\u2028b"]


def test_a_treebank_without_its_test_part_is_refused_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("train", "dev"):
        (tmp_path / f"en_x-ud-{name}.conllu").write_text(TREEBANK)
    monkeypatch.setattr(pipeline, "train", lambda *_: pytest.fail("trained"))
    monkeypatch.setattr("sys.argv", ["make", str(tmp_path), "--to", str(tmp_path / "to"), "--grammar", "1"])
    assert main() == 2 and "0 files *-ud-test.conllu" in capsys.readouterr().err


def test_rewriting(converted: Sentence) -> None:
    found = rewrite(converted, random.Random(3))
    assert found is not None and is_tree(found)
    forms = [token.form for token in found]
    assert "is" in forms and "waves" in forms and "he" not in [form.lower() for form in forms]
    at = forms.index("is")
    assert found[at].head == at and found[at].tag == "VBZ" and found[at - 1].label == "nsubj"


def test_captions_of_the_grammar() -> None:
    found = list(captions(400, 7))
    assert all(map(is_tree, found)) and found == list(captions(400, 7)) != list(captions(400, 8))
    pounce = next(token for one in captions(4_000, 1) for token in one if token.form == "pounces")
    assert (pounce.tag, pounce.pos, pounce.lemma) == ("VBZ", "VERB", "pounce")
    vocab = spacy.blank("en").vocab
    text = spacy.blank("en")
    for doc in documents(vocab, found, random.Random(0)):  # the words are those that spaCy's tokenizer gives
        assert [token.text for token in text(doc.text)] == [token.text for token in doc]


def test_inflection() -> None:
    assert [third_person(verb) for verb in ("pounce", "watch", "carry", "go")] == [
        "pounces",
        "watches",
        "carries",
        "goes",
    ]
    assert [participle(verb) for verb in ("ride", "run", "lie", "see", "wait", "row")] == [
        "riding", "running", "lying", "seeing", "waiting", "rowing",
    ]  # fmt: skip
    assert [past(verb) for verb in ("park", "stop", "carry")] == ["parked", "stopped", "carried"]
    assert [plural(noun) for noun in ("fireman", "bus", "human", "wine glass")] == [
        "firemen", "buses", "humans", "wine glasses",
    ]  # fmt: skip
    assert article("old") == "an" and article("uniform") == "a"


def test_agreement() -> None:
    vocab = spacy.blank("en").vocab

    def parsed(heads: list[int], labels: list[str], tag: str) -> Doc:
        pos = ["DET", "NOUN", "VERB" if tag == "VBZ" else "NOUN"]
        return Doc(vocab, ["A", "fox", "pounces"], heads=heads, deps=labels, tags=["DT", "NN", tag], pos=pos)

    verb = parsed([1, 2, 2], ["det", "nsubj", "ROOT"], "VBZ")
    noun = parsed([2, 2, 2], ["det", "compound", "ROOT"], "NNS")
    assert same_tree(verb, verb) and not same_tree(verb, noun)
    assert is_plausible(verb) and not is_plausible(noun)
    assert as_doc(vocab, [next(captions(1, 0))]).has_annotation("DEP")
