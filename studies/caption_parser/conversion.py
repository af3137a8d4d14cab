"""Universal Dependencies (version 2) of English as ClearNLP-style dependencies, the labels of spaCy's own pipelines.

`Doc.noun_chunks` and `sng_parser` work on the latter. The main differences: prepositions head their phrases, *be* heads
its clause, the last word of a name heads it, and coordination's conjunction hangs on the first conjunct.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from studies.caption_parser.trees import Sentence, Token, is_tree
from twinset.contracts.errors import WrongUse

_LABELS = {
    "nsubj": "nsubj", "nsubj:pass": "nsubjpass", "nsubj:outer": "nsubj", "obj": "dobj", "iobj": "dative",
    "csubj": "csubj", "csubj:pass": "csubjpass", "csubj:outer": "csubj", "ccomp": "ccomp", "xcomp": "xcomp",
    "vocative": "npadvmod", "expl": "expl", "dislocated": "dep", "advcl": "advcl", "advmod": "advmod",
    "discourse": "intj", "aux": "aux", "aux:pass": "auxpass", "cop": "cop", "mark": "mark", "nmod": "nmod",
    "nmod:poss": "poss", "nmod:unmarked": "npadvmod", "nmod:npmod": "npadvmod", "nmod:tmod": "npadvmod",
    "nmod:desc": "nmod", "obl": "npadvmod", "appos": "appos", "nummod": "nummod", "acl": "acl", "acl:relcl": "relcl",
    "amod": "amod", "det": "det", "det:predet": "predet", "case": "case", "conj": "conj", "cc": "cc",
    "cc:preconj": "preconj", "fixed": "fixed", "flat": "flat", "list": "dep", "parataxis": "parataxis",
    "compound": "compound", "compound:prt": "prt", "orphan": "dep", "goeswith": "dep", "reparandum": "dep",
    "punct": "punct", "root": "ROOT",
}  # fmt: skip
# What hangs on the predicate in Universal Dependencies and on *be* here.
_OF_CLAUSE = {
    "nsubj", "nsubjpass", "csubj", "csubjpass", "aux", "auxpass", "punct", "mark", "advcl", "cc", "conj", "expl",
    "parataxis", "ccomp", "intj", "dep",
}  # fmt: skip
_PARTS_OF_SPEECH = {
    "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT", "SCONJ", "SYM",
    "VERB", "X",
}  # fmt: skip
_POSSESSIVE = {"'s", "’s", "'"}
_ADVERBS_BEFORE_TO = {"next", "close", "prior", "due", "instead", "out", "ahead", "along", "together", "such"}
_PREPOSITIONS_OF_CLAUSES = {
    "by", "without", "for", "of", "in", "from", "after", "before", "on", "with", "about", "at", "through", "upon",
    "than", "like", "besides", "into", "against", "despite",
}  # fmt: skip


@dataclass(slots=True)
class _Word:
    form: str
    lemma: str
    pos: str
    tag: str
    head: int  # -1: the root
    relation: str
    label: str
    space: bool


def read_treebank(path: Path) -> Iterator[Sentence]:
    """The sentences of a CoNLL-U file that can be converted, in order.

    Raises `WrongUse` when there is no such file or a line is not of CoNLL-U.
    """
    try:
        with path.open(encoding="utf-8-sig") as stream:
            lines = stream.read().split("\n")
    except OSError as error:
        raise WrongUse(f"{path}: cannot be read ({error.strerror}); give the folder of a UD treebank") from error
    except UnicodeDecodeError as error:
        raise WrongUse(f"{path}: not UTF-8 ({error}); get the treebank again") from error
    words: list[_Word] = []
    for number, line in enumerate([*lines, ""], 1):
        try:
            if line and line[0] != "#":
                words += _words(line)
            elif not line and words:
                _check_heads(words)
                if sentence := convert(words):
                    yield sentence
                words = []
        except ValueError as error:
            raise WrongUse(f"{path}:{number}: {error}; get the treebank again") from error


def convert(words: list[_Word]) -> Sentence | None:
    """One sentence, or None where the rules give no tree. Changes `words`."""
    _names(words)
    _coordination(words)
    for predicate in range(len(words)):
        _copula(words, predicate)
    for noun in range(len(words)):
        _preposition(words, noun)
    for verb in range(len(words)):
        _preposition_of_clause(words, verb)
    _last_labels(words)
    if sum(word.head < 0 for word in words) != 1:
        return None
    sentence = [
        Token(
            word.form, word.lemma, word.tag, word.pos, word.head if word.head >= 0 else at,
            "ROOT" if word.head < 0 else "dep" if word.label == "ROOT" else word.label, word.space,
        )
        for at, word in enumerate(words)
    ]  # fmt: skip
    return sentence if is_tree(sentence) else None


def _words(line: str) -> list[_Word]:
    """The word of a line; none of a range of words, or of an empty node. Raises ValueError for a line that is wrong."""
    columns = line.split("\t")
    if len(columns) != 10:
        raise ValueError(f"{len(columns)} columns, CoNLL-U has 10")
    place, form, lemma, pos, tag, _, head, relation, _, other = columns
    if not place.isdecimal():
        return []
    if not form or pos not in _PARTS_OF_SPEECH or not head.isdecimal():
        raise ValueError(f"form {form[:40]!r}, part of speech {pos[:40]!r} and head {head[:40]!r} are not a word's")
    label = _LABELS.get(relation) or _LABELS.get(relation.partition(":")[0], "dep")
    lemma = lemma if lemma != "_" else form.lower()
    return [_Word(form, lemma, pos, tag, int(head) - 1, relation, label, "SpaceAfter=No" not in other)]


def _check_heads(words: list[_Word]) -> None:
    """Raise ValueError where the head of a word lies outside of the sentence above a line."""
    if (most := max(word.head for word in words)) >= len(words):
        raise ValueError(f"head {most + 1} of a sentence of {len(words)} words")


def _children(words: list[_Word], head: int) -> list[int]:
    return [at for at, word in enumerate(words) if word.head == head]


def _names(words: list[_Word]) -> None:
    """The last word of a flat name heads it."""
    for first, word in enumerate(words):
        flat = [at for at in _children(words, first) if words[at].label == "flat"]
        if not flat:
            continue
        last = max(flat)
        for at in _children(words, first):
            if at != last:
                words[at].head = last
        words[last].head, words[last].label, words[last].relation = word.head, word.label, word.relation
        word.head, word.label, word.relation = last, "compound", "compound"
        for at in flat:
            if at != last:
                words[at].label = words[at].relation = "compound"


def _coordination(words: list[_Word]) -> None:
    for word in words:
        if word.label == "cc" and word.head >= 0 and words[word.head].label == "conj":
            word.head = words[word.head].head


def _copula(words: list[_Word], predicate: int) -> None:
    """*Be* heads its clause, and the predicate is its complement."""
    copulas = [at for at in _children(words, predicate) if words[at].label == "cop"]
    if not copulas:
        return
    be, word = copulas[0], words[predicate]
    for at in _children(words, predicate):
        child = words[at]
        if at == be:
            continue
        if at in copulas:
            child.head, child.label = be, "aux"
        elif child.label in _OF_CLAUSE or (child.label == "advmod" and (at < be or word.pos not in ("ADJ", "ADV"))):
            child.head = be
    words[be].head, words[be].label, words[be].relation = word.head, word.label, word.relation
    prepositional = bool(_cases(words, predicate))
    word.head, word.relation = be, "complement"
    if prepositional:
        word.label = "prepositional complement"
    else:
        word.label = {"ADJ": "acomp", "ADV": "advmod"}.get(word.pos, "attr")


def _cases(words: list[_Word], noun: int) -> list[int]:
    children = _children(words, noun)
    return [at for at in children if words[at].label == "case" and words[at].form.lower() not in _POSSESSIVE]


def _preposition(words: list[_Word], noun: int) -> None:
    """A preposition heads its noun."""
    cases = _cases(words, noun)
    if not cases:
        return
    word, first = words[noun], words[cases[0]]
    fixed = [at for at in _children(words, cases[0]) if words[at].label == "fixed"]
    label = word.label if word.label in ("ROOT", "conj") else "agent" if word.relation == "obl:agent" else "prep"
    if fixed and words[fixed[-1]].form.lower() in ("to", "of", "from", "with", "for"):  # "in front of", "next to"
        adverb = first.pos in ("ADV", "ADJ") or first.form.lower() in _ADVERBS_BEFORE_TO
        first.head = word.head
        first.label = label if label in ("ROOT", "conj") else "advmod" if adverb else "prep"
        for at in fixed[:-1]:
            words[at].head, words[at].label = cases[0], "pobj" if words[at].pos == "NOUN" else "pcomp"
        last = fixed[-1]
        words[last].head, words[last].label = fixed[-2] if len(fixed) > 1 else cases[0], "prep"
        word.head, word.label = last, "pobj"
        return
    for at in fixed:
        words[at].head = cases[0]
        words[at].label = "advmod" if at < cases[0] else "prep" if words[at].pos == "ADP" else "pcomp"
    first.head, first.label = word.head, label
    word.head, word.label = cases[0], "pcomp" if word.pos in ("VERB", "AUX") else "pobj"
    before = cases[0]
    for at in cases[1:]:  # "out of the house", "from under the bed"
        words[at].head, words[at].label = before, "prep"
        word.head = before = at


def _preposition_of_clause(words: list[_Word], verb: int) -> None:
    """ "by doing", "without going": the preposition heads the clause."""
    word = words[verb]
    if word.label not in ("advcl", "acl") or word.pos not in ("VERB", "AUX") or word.tag != "VBG":
        return
    for at in _children(words, verb):
        mark = words[at]
        if mark.label == "mark" and mark.tag == "IN" and mark.form.lower() in _PREPOSITIONS_OF_CLAUSES:
            mark.head, mark.label = word.head, "prep"
            word.head, word.label = at, "pcomp"
            return


def _last_labels(words: list[_Word]) -> None:
    simple = {"prepositional complement": "attr", "fixed": "dep", "cop": "aux", "flat": "compound"}
    for at, word in enumerate(words):
        word.label = simple.get(word.label, word.label)
        if word.label == "mark" and word.tag == "TO":
            word.label = "aux"
        if word.label == "advmod" and word.form.lower() in ("not", "n't", "n’t"):
            word.label = "neg"
        if word.label == "xcomp" and word.pos == "ADJ":
            word.label = "acomp" if words[word.head].pos in ("VERB", "AUX") else "xcomp"
        if word.label == "xcomp" and word.pos in ("NOUN", "PROPN"):
            word.label = "attr"
        if word.label == "nmod" and word.pos in ("NOUN", "PROPN") and word.head > at:
            word.label = "compound"
