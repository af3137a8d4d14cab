"""The real annotations, where they are at hand: counts as the releases have them, and group scores of raw answers."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.evaluation.benchmarks.made_layouts import parquet, picture
from tests.guard.test_oracles import at_hand
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import BENCHMARKS, open_benchmark
from twinset.evaluation.benchmarks.reader import Item
from twinset.evaluation.examples import MATCHING_OUTCOMES, LeftOut, Matching, OwnQuestion, Query, Statement
from twinset.evaluation.metrics.measure import measure
from twinset.generators.annotation_files import read_json, read_json_lines


def asked(name: str, folder: Path) -> list[Matching | Query]:
    """All examples; images are not looked for."""
    items: list[Item] = [*open_benchmark(name, folder, captions_only=True).examples()]
    assert all(isinstance(item, Matching | Query) for item in items)
    return [item for item in items if isinstance(item, Matching | Query)]


def by_subset(items: list[Matching | Query]) -> dict[str, int]:
    return dict(Counter(item.subset for item in items))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "folder", "total"), [("sugarcrepe++", "sugarcrepe_pp", 4757), ("cola", "cola", 210), ("mmvp", "mmvp", 150)]
)
def test_whole_releases(name: str, folder: str, total: int) -> None:
    found = asked(name, at_hand(f"benchmarks/{folder}"))
    assert by_subset(found) == BENCHMARKS.find(name).counts and len(found) == total


@pytest.mark.slow
def test_vl_checklist_has_80_examples_whose_two_captions_are_one() -> None:
    items = [*open_benchmark("vl-checklist", at_hand("benchmarks/vl_checklist"), captions_only=True).examples()]
    lost = [item for item in items if isinstance(item, LeftOut)]
    assert (len(items), len(lost), {one.reason for one in lost}) == (54701, 80, {"both captions are the same"})
    assert sum(BENCHMARKS.find("vl-checklist").counts.values()) == 54701


def test_corrected_answers_of_mmvp_beside_those_of_the_release() -> None:
    released, corrected = (asked(name, at_hand("benchmarks/mmvp")) for name in ("mmvp", "mmvp-corrected"))
    both = zip(released, corrected, strict=True)
    captions = [(a.captions, b.captions) for a, b in both if isinstance(a, Matching) and isinstance(b, Matching)]
    captions = [(a, b) for a, b in captions if a != b]
    assert len(captions) == 2 and all(a == b[::-1] for a, b in captions)
    assert captions[0][0][0] == "Does the elephant have long or short tusks? Long"


def test_naturalbench_has_four_questions_a_group() -> None:
    found = asked("naturalbench", at_hand("benchmarks/naturalbench"))
    assert by_subset(found) == {"test": 950}
    assert Counter(item.category for item in found) == {"yes_no": 843, "mcq": 107}
    captions = [item.captions for item in found if isinstance(item, Matching)]
    assert captions[0] == ("Is the squirrel climbing up the fence?", "Is the squirrel climbing down the fence?")
    texts = [text for two in captions for text in two]
    assert all(isinstance(text, OwnQuestion) for text in texts)
    own = {text.asked for text in texts if isinstance(text, OwnQuestion)}
    rows = read_json(at_hand("benchmarks/naturalbench") / "test_set.json.gz")
    assert own == {row[0].strip() for row in rows}, "word by word as released"


def test_whatsup_a_in_sets_of_four(tmp_path: Path) -> None:
    records = read_json(at_hand("benchmarks/whatsup") / "controlled_images_dataset_extra_negatives.json")
    (tmp_path / "controlled_images_dataset.json").write_text(json.dumps(records))
    found = asked("whatsup", tmp_path)
    assert by_subset(found) == {"a": 412} and all(len(one.gallery) == 4 for one in found if isinstance(one, Query))
    assert Counter(one.category for one in found) == dict.fromkeys(("on", "under", "left", "right"), 103)
    assert set(Counter(one.group for one in found).values()) == {4}


def test_whatsup_states_as_many_as_its_questions_have() -> None:
    prompts = at_hand("benchmarks/whatsup") / "prompts"
    files = {
        "a": "Controlled_Images_A_with_answer_four_options", "b": "Controlled_Images_B_with_answer_four_options",
        "coco-one": "COCO_QA_one_obj_with_answer_four_options", "coco-two": "COCO_QA_two_obj_with_answer_four_options",
        "vg-one": "VG_QA_one_obj_with_answer_six_options", "vg-two": "VG_QA_two_obj_with_answer_six_options",
    }  # fmt: skip
    counted = {subset: len(read_lines(next(prompts.glob(f"{name}.jsonl*")))) for subset, name in files.items()}
    assert counted == BENCHMARKS.find("whatsup").counts


def read_lines(path: Path) -> list[object]:
    return [value for _, value in read_json_lines(path)]


def test_vsr_in_its_splits() -> None:
    found = [*open_benchmark("vsr", at_hand("benchmarks/vsr"), captions_only=True).examples()]
    statements = [one for one in found if isinstance(one, Statement)]
    assert Counter(one.subset for one in statements) == BENCHMARKS.find("vsr").counts and len(found) == 3417
    folder = at_hand("benchmarks/vsr") / "splits"
    held = [one for split in ("random/test.jsonl.gz", "zeroshot/test.jsonl.gz") for one in read_lines(folder / split)]
    assert [one.true for one in statements] == [bool(one["label"]) for one in held if isinstance(one, dict)]


def test_vismin_puts_the_texts_in_the_order_of_its_answers(tmp_path: Path) -> None:
    solution = at_hand("benchmarks/vismin") / "sim_solution.csv"
    (tmp_path / "sim_solution.csv").symlink_to(solution.resolve())
    categories = [line.rsplit(",", 1)[1] for line in solution.read_text().splitlines()[1:]]
    image = {"bytes": picture(0), "path": None}
    rows = [
        {"image_0": image, "image_1": image, "text_0": f"first {n}", "text_1": f"second {n}", "category": category}
        for n, category in enumerate(categories)
    ]
    parquet(tmp_path / "test-00000-of-00001.parquet", rows, ("image_0", "image_1"))
    found = [one for one in open_benchmark("vismin", tmp_path).examples() if isinstance(one, Matching)]
    assert Counter(one.category for one in found) == {"relation": 622, "counting": 589, "object": 579, "attribute": 294}
    assert sum(one.captions[0].startswith("second") for one in found) == 1020 and len(found) == 2084
    parquet(tmp_path / "test-00000-of-00001.parquet", [*rows, rows[0]], ("image_0", "image_1"))
    with pytest.raises(WrongUse, match="has no row for it"):
        asked("vismin", tmp_path)


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
