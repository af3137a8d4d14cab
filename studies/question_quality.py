"""The questions and scores of image verification against those that Cho et al. (2023) released, as Markdown:

python -m studies.question_quality ../shared/data/dsg
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from studies.calibration import at_threshold
from twinset.evaluation.metrics.correlation import SPEARMAN, correlations
from twinset.generators.image_verification.questions.asking import prepared, questions_of
from twinset_extras.ratings.released import DSG_RATINGS, read_dsg_ratings, read_dsg_scores, rows_of

MODELS = {"PaLI": "pali17b_dsg.csv", "mPLUG": "mplug_dsg.csv", "InstructBLIP": "instructblip_dsg.csv"}
CAPTIONS = ("tifa160-dev-anns.csv", "dsg-1k-anns.csv")
TUPLES = ("item_id", "text", "category_broad", "tuple")
GOOD, THRESHOLD = 4.5, 0.75
_TUPLE = re.compile(r"\((.*)\)", re.DOTALL)
_ENDS = ("ing", "ed", "es", "s", "e", "y")


@dataclass(frozen=True, slots=True)
class Told:
    """What one question asks, for comparison, as stems.

    heads: last words of the names of what it is about. said: the words of what it says. all: those of the whole tuple.
    """

    kind: str
    heads: tuple[str, ...]
    said: frozenset[str] = frozenset()
    all: frozenset[str] = field(default=frozenset(), compare=False)


def agreement(released: Iterable[Told], own: Iterable[Told]) -> dict[str, tuple[int, int, int, int]]:
    """By kind: released tuples that are found, all of them; own ones that are right, all of them.

    Entities and counts agree by head; attributes by head and a word; relations by both heads. A released attribute is
    also found within another own tuple: "a man sitting on a bench" has one relation here, and a state besides there; "a
    tennis court" is one name here.
    """
    theirs, ours = list(dict.fromkeys(released)), list(dict.fromkeys(own))
    found: dict[str, tuple[int, int, int, int]] = {}
    for kind in ("entity", "attribute", "count", "relation"):
        wanted, given = ([one for one in some if one.kind == kind] for some in (theirs, ours))
        hits = sum(
            any(_agree(one, other) for other in given)
            or (kind == "attribute" and any(_within(one, two) for two in ours))
            for one in wanted
        )
        right = sum(any(_agree(one, other) for other in wanted) for one in given)
        found[kind] = hits, len(wanted), right, len(given)
    return found


def _within(one: Told, other: Told) -> bool:
    return one.heads[0] in other.heads and bool(one.said & (other.all - set(one.heads)))


def _agree(one: Told, other: Told) -> bool:
    if one.kind == "entity":
        return one.heads == other.heads
    if one.kind == "relation":
        return set(one.heads[:2]) == set(other.heads[:2])
    return one.heads == other.heads and (one.kind == "count" or bool(one.said & other.said))


def released_tuples(path: Path) -> dict[str, tuple[str, list[Told]]]:
    """Captions of a released file with their tuples, by item."""
    found: dict[str, tuple[str, list[Told]]] = {}
    for _, row in rows_of(path, TUPLES):
        inside = _TUPLE.search(row["tuple"])
        parts = [part.strip() for part in inside[1].split(",")] if inside else []
        told = found.setdefault(row["item_id"], (row["text"], []))[1]
        kind = row["category_broad"].strip()
        if not parts or not parts[0] or kind == "global":
            continue
        if "==" in row["tuple"]:
            told.append(Told("count", (head(parts[0]),)))
        elif kind == "entity":
            told.append(Told("entity", (head(parts[0]),)))
            if "'s " in parts[0]:  # "man's hat" says what the own relation "have" or "wear" asks
                owner, _, own = parts[0].partition("'s ")
                told.append(Told("relation", (head(owner), head(own))))
        elif kind in ("relation", "action") and len(parts) >= 3:
            told.append(Told("relation", (head(parts[0]), head(parts[1])), stems(parts[2:])))
        elif kind in ("attribute", "action") and len(parts) >= 2:
            told.append(Told("attribute", (head(parts[0]),), stems(parts[1:])))
    return found


def own_tuples(captions: Sequence[str]) -> list[list[Told]]:
    """The tuples of own questions, a list a caption."""
    from twinset.generators.scene_graphs.relations import parser_of
    from twinset.models.spacy_pipelines import find_pipeline

    found = []
    for doc in parser_of(find_pipeline()).nlp.pipe(map(prepared, captions)):
        told = []
        for one in questions_of(doc):
            heads = tuple(head(word) for word in one.words[: 2 if one.kind == "relation" else 1])
            told.append(Told(one.kind, heads, stems(one.words[len(heads) :]), stems(one.words)))
        found.append(told)
    return found


def head(phrase: str) -> str:
    """The stem of a phrase's last word; numbers that tell equal names apart are dropped."""
    words = re.findall(r"[^\W\d_]+", phrase.lower().split("'s ")[-1])
    return stem(words[-1]) if words else ""


def stems(phrases: Iterable[str]) -> frozenset[str]:
    """The stems of all words."""
    return frozenset(stem(word) for phrase in phrases for word in re.findall(r"[^\W\d_]+", phrase.lower()))


def stem(word: str) -> str:
    """A word without its ending, so that "sits" and "sitting", "wood" and "wooden" compare."""
    irregular = {"men": "man", "women": "woman", "children": "child", "people": "person", "wooden": "wood"}
    word = irregular.get(word, word)
    for end in _ENDS:
        if word.endswith(end) and len(word) - len(end) >= 3:
            word = word[: -len(end)]
            break
    return word[:-1] if len(word) > 3 and word[-1] == word[-2] else word


def document(folder: Path) -> str:
    """Both tables for a folder of released files."""
    ratings = read_dsg_ratings(folder / DSG_RATINGS)
    lines = ["| model | images | Spearman | rejected below 0.75 | good kept |", "| --- | --- | --- | --- | --- |"]
    for name, file in MODELS.items():
        found = {key: score for key, score in read_dsg_scores(folder / file).items() if key in ratings}
        scores, means = np.array([*found.values()]), np.array([ratings[key].mean for key in found])
        effect = at_threshold(scores, means >= GOOD, THRESHOLD)
        shares = f"{effect.rejected:.1%} | {effect.good_kept:.1%}"
        rho = correlations([*scores], [*means], None, resamples=0)[SPEARMAN].value
        lines.append(f"| {name} | {len(scores)} | {rho:.3f} | {shares} |")
    lines += ["", "| captions | kind | released | recall | own | precision |", "| --- | --- | --- | --- | --- | --- |"]
    for file in CAPTIONS:
        items = list(released_tuples(folder / file).values())
        total: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0, 0, 0])
        for (_, theirs), ours in zip(items, own_tuples([text for text, _ in items]), strict=True):
            for kind, counts in agreement(theirs, ours).items():
                total[kind] = [one + more for one, more in zip(total[kind], counts, strict=True)]
        for kind, (hits, wanted, right, given) in total.items():
            recall, precision = f"{hits / max(wanted, 1):.1%}", f"{right / max(given, 1):.1%}"
            lines.append(f"| {file} | {kind} | {wanted} | {recall} | {given} | {precision} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    sys.stdout.write(document(Path(sys.argv[1])))
