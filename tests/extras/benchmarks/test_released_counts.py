"""The real annotations, where they are at hand: counts as the releases have them, and group scores of raw answers."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.evaluation.benchmarks.made_layouts import matchings, parquet, picture
from tests.guard.test_oracles import at_hand
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import BENCHMARKS, open_benchmark
from twinset.evaluation.examples import MATCHING_OUTCOMES, LeftOut, Matching, OwnQuestion, Query, Statement
from twinset.evaluation.metrics.measure import measure
from twinset.generators.annotation_files import read_json, read_json_lines


def asked(name: str, folder: Path) -> list[Matching | Query]:
    """All examples; images are not looked for."""
    items = open_benchmark(name, folder, captions_only=True).examples()
    return [item for item in items if isinstance(item, Matching | Query)]


def by_subset(items: list[Matching | Query]) -> dict[str, int]:
    return dict(Counter(item.subset for item in items))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "folder", "total"), [("sugarcrepe++", "sugarcrepe_pp", 4757), ("cola", "cola", 210), ("mmvp", "mmvp", 150)]
)
def test_whole_releases(name: str, folder: str, total: int) -> None:
    items = asked(name, at_hand(f"benchmarks/{folder}"))
    assert by_subset(items) == BENCHMARKS.find(name).counts and len(items) == total


@pytest.mark.slow
def test_vl_checklist_has_80_examples_whose_two_captions_are_one() -> None:
    items = [*open_benchmark("vl-checklist", at_hand("benchmarks/vl_checklist"), captions_only=True).examples()]
    lost = [item for item in items if isinstance(item, LeftOut)]
    assert (len(items), len(lost), {item.reason for item in lost}) == (54701, 80, {"both captions are the same"})
    assert sum(BENCHMARKS.find("vl-checklist").counts.values()) == 54701


def test_corrected_answers_of_mmvp_beside_those_of_the_release() -> None:
    released, corrected = (asked(name, at_hand("benchmarks/mmvp")) for name in ("mmvp", "mmvp-corrected"))
    captions = [[item.captions for item in items if isinstance(item, Matching)] for items in (released, corrected)]
    changed = [(before, after) for before, after in zip(*captions, strict=True) if before != after]
    assert len(changed) == 2 and all(before == after[::-1] for before, after in changed)
    assert changed[0][0][0] == "Does the elephant have long or short tusks? Long"


def test_naturalbench_has_four_questions_a_group() -> None:
    items = asked("naturalbench", at_hand("benchmarks/naturalbench"))
    assert by_subset(items) == {"test": 950}
    assert Counter(item.category for item in items) == {"yes_no": 843, "mcq": 107}
    captions = [item.captions for item in items if isinstance(item, Matching)]
    assert captions[0] == ("Is the squirrel climbing up the fence?", "Is the squirrel climbing down the fence?")
    own = {text.asked for texts in captions for text in texts if isinstance(text, OwnQuestion)}
    rows = read_json(at_hand("benchmarks/naturalbench") / "test_set.json.gz")
    assert own == {row[0].strip() for row in rows}, "word by word as released"


def test_whatsup_a_in_sets_of_four(tmp_path: Path) -> None:
    records = read_json(at_hand("benchmarks/whatsup") / "controlled_images_dataset_extra_negatives.json")
    (tmp_path / "controlled_images_dataset.json").write_text(json.dumps(records))
    items = asked("whatsup", tmp_path)
    assert by_subset(items) == {"a": 412} and {len(item.gallery) for item in items if isinstance(item, Query)} == {4}
    assert Counter(item.category for item in items) == dict.fromkeys(("on", "under", "left", "right"), 103)
    assert set(Counter(item.group for item in items).values()) == {4}


def test_whatsup_states_as_many_as_its_questions_have() -> None:
    prompts = at_hand("benchmarks/whatsup") / "prompts"
    files = {
        "a": "Controlled_Images_A_with_answer_four_options", "b": "Controlled_Images_B_with_answer_four_options",
        "coco-one": "COCO_QA_one_obj_with_answer_four_options", "coco-two": "COCO_QA_two_obj_with_answer_four_options",
        "vg-one": "VG_QA_one_obj_with_answer_six_options", "vg-two": "VG_QA_two_obj_with_answer_six_options",
    }  # fmt: skip
    counted = {subset: len(read_lines(next(prompts.glob(f"{name}.jsonl*")))) for subset, name in files.items()}
    assert counted == BENCHMARKS.find("whatsup").counts


def read_lines(path: Path) -> list[Any]:
    return [value for _, value in read_json_lines(path)]


def test_vsr_in_its_splits() -> None:
    items = [*open_benchmark("vsr", at_hand("benchmarks/vsr"), captions_only=True).examples()]
    statements = [item for item in items if isinstance(item, Statement)]
    assert Counter(item.subset for item in statements) == BENCHMARKS.find("vsr").counts and len(items) == 3417
    folder = at_hand("benchmarks/vsr") / "splits"
    rows = [row for split in ("random", "zeroshot") for row in read_lines(folder / split / "test.jsonl.gz")]
    assert [item.true for item in statements] == [bool(row["label"]) for row in rows]


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
    items = matchings(open_benchmark("vismin", tmp_path))
    assert Counter(item.category for item in items) == {
        "relation": 622,
        "counting": 589,
        "object": 579,
        "attribute": 294,
    }
    assert sum(item.captions[0].startswith("second") for item in items) == 1020 and len(items) == 2084
    parquet(tmp_path / "test-00000-of-00001.parquet", [*rows, rows[0]], ("image_0", "image_1"))
    with pytest.raises(WrongUse, match="has no row for it"):
        asked("vismin", tmp_path)


def bare(text: str) -> str:
    """Without small words between others, and without one article at the start."""
    for word in ("a", "an", "the", "with", "and"):
        text = text.replace(f" {word} ", " ")
    for word in ("a", "an", "the"):
        text = text.removeprefix(f"{word} ")
    return text.lower()


def chooses(answer: str, letter: str, own: str, opposite: str) -> bool:
    """As the authors read an answer. Their further phrases are left out: they decide none of these answers."""
    if answer == letter or answer.startswith((f"{letter})", f"({letter})", f"Option {letter}", f"Option ({letter})")):
        return True
    named = f"image presents ({letter})".lower() in answer.lower()
    return named or (bare(own) in bare(answer) and bare(opposite) not in bare(answer))


def caption_of(record: dict[str, Any], image: int) -> str | None:
    """The letter of the caption that was chosen for an image; None where both or none is named."""
    asked = record[f"prompt_image_{image}"].removeprefix("Does this image present (A) ")
    first, second = asked.partition("? ")[0].split(", or (B) ")
    answer = record[f"response_image_{image}"]
    chosen = {"A": chooses(answer, "A", first, second), "B": chooses(answer, "B", second, first)}
    return next(letter for letter in chosen if chosen[letter]) if sum(chosen.values()) == 1 else None


def image_of(record: dict[str, Any], caption: int) -> str | None:
    """Which image was chosen for a caption."""
    answer = record[f"response_caption_{caption}"].lower()

    def chooses_image(own: str, opposite: str) -> bool:
        phrases = (f"{own} image better aligns", f"{own} image aligns better", f"the {own} image is more relevant")
        return (own in answer and opposite not in answer) or any(phrase in answer for phrase in phrases)

    chosen = {"first": chooses_image("first", "second"), "second": chooses_image("second", "first")}
    return next(word for word in chosen if chosen[word]) if sum(chosen.values()) == 1 else None


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
    measured = measure(pa.Table.from_pylist(rows, MATCHING_OUTCOMES), resamples=0).all
    assert measured.n == 300 and round(measured.figures["group"].value, 1) == group
