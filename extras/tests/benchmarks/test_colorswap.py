"""Raw answers of two models to ColorSwap's 300 test pairs, read as their authors read them, give their group scores."""

from typing import Any

import pyarrow as pa
import pytest

from tests.evaluation.benchmarks.test_published_counts import at_hand
from twinset.evaluation.examples import MATCHING_OUTCOMES
from twinset.evaluation.metrics.measure import measure
from twinset.generators.annotation_files import read_json

#: What names a choice, wherever it stands in an answer; X is the letter. The authors read no other words.
ANYWHERE = (
    *("image presents (X)", "image presents option (X)", "image presents option X", "it would imply (X)"),
    *("it could metaphorically represent (X)", "it is (X)"),
)
FIRST = ("X)", "(X)", "Option X", "Option (X)")
SMALL = ("a", "an", "the", "with", "and")


def bare(text: str) -> str:
    """Without small words between others, and without one article at the start."""
    for word in SMALL:
        text = text.replace(f" {word} ", " ")
    for word in SMALL[:3]:
        text = text.removeprefix(f"{word} ")
    return text.lower()


def says(answer: str, own: str, other: str, letter: str, others: str) -> bool:
    small = answer.lower()
    if own.lower() in small and other.lower() not in small:
        return True
    if any(phrase.replace("X", letter).lower() in small for phrase in ANYWHERE) or answer == letter:
        return True
    if answer.startswith(tuple(phrase.replace("X", letter) for phrase in FIRST)):
        return True
    named = any(phrase.replace("X", letter).lower() in small for phrase in ("option X", "option (X)"))
    if named and f"{others})".lower() not in small:
        return True
    if f"this image presents {own}".lower() in small:
        return True
    return bare(own) in bare(answer) and bare(other) not in bare(answer)


def caption_of(record: dict[str, Any], image: int) -> str | None:
    """The letter of the caption that was chosen for an image; None where both or none is named."""
    asked = record[f"prompt_image_{image}"].removeprefix("Does this image present (A) ")
    first, second = asked.partition("? ")[0].split(", or (B) ")
    answer = record[f"response_image_{image}"]
    said = {"A": says(answer, first, second, "A", "B"), "B": says(answer, second, first, "B", "A")}
    return next(letter for letter in said if said[letter]) if sum(said.values()) == 1 else None


def image_of(record: dict[str, Any], caption: int) -> str | None:
    """Which image was chosen for a caption."""
    answer = record[f"response_caption_{caption}"].lower()

    def chosen(own: str, other: str) -> bool:
        phrases = (f"{own} image better aligns", f"{own} image aligns better", f"the {own} image is more relevant")
        return (own in answer and other not in answer) or any(phrase in answer for phrase in phrases)

    said = {"first": chosen("first", "second"), "second": chosen("second", "first")}
    return next(word for word in said if said[word]) if sum(said.values()) == 1 else None


@pytest.mark.parametrize(("model", "group"), [("llava", 42.0), ("llavar", 8.3)])
def test_group_scores_of_the_release(model: str, group: float) -> None:
    folder = at_hand("benchmarks/colorswap")
    texts, images = (read_json(folder / f"{kind}-{model}-colorswap.json.gz") for kind in ("text", "image"))
    rows = []
    for text, image in zip(texts, images, strict=True):
        right = [caption_of(text, n) == text[f"log_{n}"]["correct_answer"] for n in (1, 2)]
        right += [image_of(image, n) == image[f"log_{n}"]["correct_answer"] for n in (1, 2)]
        names = ("text_score_i0", "text_score_i1", "image_score_c0", "image_score_c1")
        named = {"key": str(text["id"]), "subset": "test", "category": "", "group": str(text["id"])}
        rows.append(named | dict(zip(names, right, strict=True)))
    found = measure(pa.Table.from_pylist(rows, MATCHING_OUTCOMES), resamples=0).all
    assert found.n == 300 and round(found.figures["group"].value, 1) == group
