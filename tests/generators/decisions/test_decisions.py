"""Agreement, accuracy and shares, against tables computed by hand and BiVLC's Table 7.

Pairs of the images that people chose: planned from their decisions, and from the captions that these left.
In which words, blocks and instances people are asked.
From answers to decisions: the rules of BiVLC, majority, ties and those who settle them.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.generators.decisions.made_stages import Caption, write_stages
from tests.generators.decisions.tasks import answer, task
from tests.generators.decisions.test_image_sources import ADDED, FAILS, FITS, STAGES, decide, recipe_of
from twinset.contracts.errors import DecisionsMissing, WrongUse
from twinset.contracts.recipe import load_recipe
from twinset.generators.decisions.agreement import (
    PairAgreement,
    agreement_of,
    answers_needed,
    by_pair,
    cohens_kappa,
    decided,
    decisions_needed,
    gold_accuracy,
    is_tie,
    mean_kappa,
    share,
)
from twinset.generators.decisions.protocol import Asking, check_labels, of_whole_instances, own_words, read_protocol
from twinset.generators.decisions.questions import QUESTIONS, Match, question_of
from twinset.generators.generated_pairs.source import GeneratedPairs
from twinset.generators.human_baseline import HumanBaseline
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.stages.job import Job
from twinset.stages.run_here import build_here


def both(table: list[list[int]]) -> tuple[list[str], list[str]]:
    """What two annotators said, of a table of counts: rows by the first, columns by the second."""
    said = [(row, column) for row, counts in enumerate(table) for column, n in enumerate(counts) for _ in range(n)]
    return [str(row) for row, _ in said], [str(column) for _, column in said]


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        ([[20, 5], [10, 15]], 0.4),  # p_o = 35/50, p_e = (25 * 30 + 25 * 20) / 2500 = 0.5
        ([[45, 15], [25, 15]], (0.6 - 0.54) / 0.46),
        ([[10, 0], [0, 10]], 1.0),
        ([[0, 10], [10, 0]], -1.0),
        ([[3, 0, 1], [0, 2, 0], [1, 0, 3]], (0.8 - 0.36) / 0.64),
    ],
)
def test_kappa_of_tables_made_by_hand(table: list[list[int]], kappa: float) -> None:
    first, second = both(table)
    assert cohens_kappa(first, second) == pytest.approx(kappa)
    found = agreement_of(("a", "b"), first, second)
    assert found.low is not None and found.high is not None and found.low <= kappa <= found.high


def test_the_interval_of_kappa() -> None:
    # p_o = 35 of 50, by Wilson 0.5625 to 0.8090; p_e = 0.5, so that kappa = (p_o - 0.5) / 0.5
    found = agreement_of(("a", "b"), *both([[20, 5], [10, 15]]))
    assert (found.low, found.high) == (pytest.approx(0.1250, abs=1e-3), pytest.approx(0.6180, abs=1e-3))


@pytest.mark.parametrize(("tasks", "low"), [(4, 0.02), (20, 0.677), (200, 0.962)])
def test_the_interval_of_full_agreement_is_the_wider_the_fewer_tasks_there_are(tasks: int, low: float) -> None:
    # Wilson's lower end of n of n is n / (n + z²), and p_e = 0.5.
    found = agreement_of(("a", "b"), *both([[tasks // 2, 0], [0, tasks // 2]]))
    assert (found.kappa, found.low, found.high) == (1.0, pytest.approx(low, abs=1e-3), 1.0)


def test_kappa_is_not_defined_where_both_always_say_the_same() -> None:
    assert cohens_kappa(["any"] * 5, ["any"] * 5) is None and cohens_kappa([], []) is None
    assert cohens_kappa(["any"] * 5, ["any"] * 4 + ["none"]) == 0
    assert mean_kappa([PairAgreement(("a", "b"), 5, None)]) is None


def test_the_mean_of_table_7() -> None:
    pairs = [PairAgreement(("a", "b"), 100, kappa) for kappa in (0.66, 0.43, 0.56, 0.43, 0.38)]
    assert mean_kappa([*pairs, PairAgreement(("c", "d"), 9, None)]) == pytest.approx(0.492)


def test_only_tasks_that_two_annotators_share_are_compared() -> None:
    tasks = [task(number=n) for n in range(4)]
    said = {"a": "01nn", "b": "1nnn", "c": "..0."}
    answers = [
        answer(one, name, {"n": "none"}.get(value, value))
        for name, values in said.items()
        for one, value in zip(tasks, values, strict=True)
        if value != "."
    ]
    answers.append(answer(tasks[0], "admin", "2", adjudicated=True))
    categories = {"0": "any", "1": "any", "none": "none"}
    found = {one.annotators: one for one in by_pair(answers, categories)}
    assert {names: one.tasks for names, one in found.items()} == {("a", "b"): 4, ("a", "c"): 1, ("b", "c"): 1}
    assert found["a", "b"].kappa == pytest.approx(0.5)  # p_o = 3/4, p_e = 2/4 * 1/4 + 2/4 * 3/4 = 1/2


def test_accuracy_on_gold_tasks() -> None:
    tasks = [task(number=n) for n in range(3)]
    answers = [answer(one, name, value) for name, value in (("a", "1"), ("b", "none")) for one in tasks]
    found = gold_accuracy(answers, {tasks[0].key: "1", tasks[1].key: "none", "elsewhere": "1"})
    assert {name: (one.count, one.of) for name, one in found.items()} == {"a": (1, 2), "b": (1, 2)}


def test_wilsons_interval() -> None:
    # Brown, Cai and DasGupta (2001): 0 of 10 gives 0 to z² / (n + z²) = 0.2775.
    assert (share(0, 10).low, share(0, 10).high) == (0.0, pytest.approx(0.2775, abs=1e-4))
    assert (share(10, 10).low, share(10, 10).high) == (pytest.approx(0.7225, abs=1e-4), 1.0)
    half = share(50, 100)
    assert (half.low, half.high) == (pytest.approx(0.4038, abs=1e-4), pytest.approx(0.5962, abs=1e-4))
    assert (share(0, 0).low, share(0, 0).high) == (0.0, 1.0)


PAIRS = {"kind": "generated-pairs", **STAGES, "photos": "/photos", "licence": "CC0-1.0"}


def pairs(**settings: Any) -> GeneratedPairs:
    return GeneratedPairs.model_validate({**PAIRS, **settings})


@pytest.fixture
def context(tmp_path: Path) -> Context:
    """Of pairs of four captions, for which people chose images."""
    write_stages(tmp_path, [FITS, FAILS, ADDED, Caption((0.5, 0.5, 1.0), (0.0, 0.0, 0.0))])
    recipe, out = recipe_of(tmp_path, {"best": {"kind": "image-choice"}}), tmp_path / "out"
    with pytest.raises(DecisionsMissing):
        build_here(recipe, str(out))
    generator: Any = Job(recipe, Store(str(out))).worker("best").generator
    decide(generator, out, "1", "none", "0", "2")
    build_here(recipe, str(out))
    folders = {**dict.fromkeys(STAGES, str(tmp_path)), "best": str(tmp_path / "out" / "_stages")}
    return Context("bivlc", earlier=lambda stage: FinishedStage(Store(folders[stage]), stage))


def test_pairs_are_planned_from_what_people_chose(context: Context) -> None:
    source = pairs(choice="people", decisions="best")
    assert source.reads == ("negatives", "images", "verified", "best")
    generator = source.open(context)
    planned = list(generator.plan())
    assert [(one.captions0[0], one.number, one.choice) for one in planned] == [
        ("caption 0", 1, "people"),
        ("caption 2", 0, "people"),
        ("caption 3", 2, "people"),
    ]
    assert [one.score for one in planned] == [1.0, 1.0, 1.0]
    assert generator.excluded == {"not-chosen": 1}
    assert "People chose the image of each negative caption" in source.how_made({})


def test_an_unused_choice_reads_no_decisions(context: Context) -> None:
    source = pairs(decisions="best")
    assert source.reads == ("negatives", "images", "verified") and source.chosen_by == "score"
    generator = source.open(context)
    assert {one.choice for one in generator.plan()} == {"score"}
    assert pairs(choice="first").reads == ("negatives", "images")


def test_decisions_about_other_images_are_refused(context: Context, tmp_path: Path) -> None:
    write_stages(tmp_path, [FITS, FAILS, ADDED, FAILS], rebuilt={(2, 0): "f" * 64})
    generator = pairs(choice="people", decisions="best").open(context)
    with pytest.raises(WrongUse, match=r"decides about the image 'images-[a-z0-9]+', which is not among these images"):
        list(generator.plan())


def test_a_choice_without_what_chooses_is_refused() -> None:
    with pytest.raises(ValueError, match="name it with decisions"):
        pairs(choice="people")
    with pytest.raises(ValueError, match="name it with verified"):
        pairs(choice="score", verified=None)


WORDS = "title: Ours\nquestions:\n  match:\n    instances: 3\n    blocks:\n"
BLOCK = "      - {{tasks: {0}, title: Which {0}, instructions: [Look.]}}\n"


def written(folder: Path, text: str) -> str:
    (folder / "words.yaml").write_text(text)
    return str(folder / "words.yaml")


def test_the_shipped_protocol_has_the_words_of_the_paper_and_25_instances() -> None:
    bivlc = read_protocol("bivlc")
    assert {*bivlc.questions} == {"best-image", "fits-caption", "match"}
    assert (bivlc.of("match").instances, bivlc.of("fits-caption").instances) == (25, 0)
    text, image = bivlc.of("match").blocks
    assert "word order" in text.instructions[-1] and "Aesthetic defects" in image.instructions[-1]
    assert "equally well" in bivlc.of("fits-caption").blocks[0].instructions[0]
    assert bivlc.of("best-image").blocks[0].labels == {"none": "None"}
    shown = [task("match", images=("a",), image_tars=("t",), image_sha256s=("0",)), task("match")]
    assert [bivlc.of("match").block_of(one) for one in shown] == [0, 1]
    for name in bivlc.questions:
        check_labels(bivlc.of(name), task(name))


def test_without_a_protocol_a_question_has_its_own_words_and_one_block() -> None:
    for name in QUESTIONS.kinds():
        question = question_of(name)
        asking = own_words(type(question))
        assert (asking.instances, len(asking.blocks)) == (0, 1)
        assert (asking.blocks[0].title, asking.blocks[0].instructions) == (question.title, question.instructions)
        assert asking.block_of(task(name)) == 0 and asking.unit(task(name)) == "people-0"


def test_a_file_of_ones_own_replaces_the_words(tmp_path: Path) -> None:
    place = written(tmp_path, WORDS + BLOCK.format("text-to-image") + BLOCK.format("image-to-text"))
    match = read_protocol(place).of("match")
    assert match.instances == 3 and [one.title for one in match.blocks] == [
        "Which text-to-image",
        "Which image-to-text",
    ]
    assert match.block_of(task("match")) == 0  # the order of the file is the order asked
    with pytest.raises(WrongUse, match="'Ours' does not say how keep-pair is asked"):
        read_protocol(place).of("keep-pair")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (WORDS + BLOCK.format("text-to-image"), "one block each for image-to-text, text-to-image"),
        (WORDS + BLOCK.format("sound-to-image") * 2, "one block each for"),
        (WORDS.replace("match", "guess") + BLOCK.format("x"), "guess"),
        (WORDS.replace("instances: 3", "instances: -3") + BLOCK.format("x"), "instances"),
        (WORDS.replace("instances: 3", "people: 3") + BLOCK.format("x"), "people"),
        ("title: a\ntitle: b\n", "twice"),
        ("title: &a b\nquestions: *a\n", "alias"),
        ("title: !!python/object/apply:os.system [ls]\n", "tag"),
        (WORDS + "      - {title: '', instructions: [Look.]}\n", "title"),
        (WORDS + "      - {title: a, instructions: []}\n", "instructions"),
        (WORDS + f"      - {{title: a, instructions: ['{'x' * 2001}']}}\n", "instructions"),
        ("", "not a vocabulary"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    place = written(tmp_path, text)
    with pytest.raises(WrongUse, match=words) as caught:
        read_protocol(place)
    assert place in str(caught.value)


def test_a_protocol_that_is_not_there_is_named() -> None:
    with pytest.raises(WrongUse, match="there is no protocol 'bivcl'; name bivlc, or a YAML file"):
        read_protocol("bivcl")
    with pytest.raises(WrongUse, match=r"/nowhere\.yaml"):
        read_protocol("/nowhere.yaml")


def test_labels_are_of_answers_that_the_question_has(tmp_path: Path) -> None:
    blocks = "[{title: a, instructions: [b], labels: {neither: Neither}}]"
    text = f"title: a\nquestions:\n  fits-caption:\n    blocks: {blocks}\n"
    with pytest.raises(WrongUse, match="'neither' is not an answer without image or text; it has both"):
        check_labels(read_protocol(written(tmp_path, text)).of("fits-caption"), task("fits-caption"))


def source(**settings: Any) -> HumanBaseline:
    return HumanBaseline.model_validate({"kind": "human-baseline", "pairs": "mine", **settings})


def test_gold_tasks_and_instances_of_ones_own_do_not_go_together(tmp_path: Path) -> None:
    (tmp_path / "gold.csv").write_text("key,answer\n")
    with pytest.raises(WrongUse, match=r"ask\.protocol: gives each annotator instances of their own"):
        source(protocol="bivlc", gold=tmp_path / "gold.csv").check_inputs("ask", {"annotations"})
    with pytest.raises(WrongUse, match=r"ask\.protocol: there is no protocol 'paper'"):
        source(protocol="paper").check_inputs("ask", {"annotations"})


def test_the_name_of_a_protocol_is_no_place_and_a_file_is_one() -> None:
    assert "protocol" not in source(protocol="bivlc").incidental
    named = source(protocol="./words.yaml")
    assert "protocol" in named.incidental and [str(one) for _, _, one in named.places()] == ["./words.yaml"]


def test_a_recipe_names_a_file_beside_itself(tmp_path: Path) -> None:
    written(tmp_path, WORDS + BLOCK.format("text-to-image") + BLOCK.format("image-to-text"))
    asking = {"kind": "human-baseline", "pairs": "/data/out/mine", "protocol": "./words.yaml"}
    (tmp_path / "r.yaml").write_text(json.dumps({"name": "r", "stages": {"ask": {"source": asking}}}))
    found: Any = load_recipe(tmp_path / "r.yaml").stages["ask"].source
    assert found.asking(Match.name).instances == 3


def test_only_who_answered_all_about_an_instance_counts() -> None:
    tasks = [task("match", n, subject=f"pair-{n // 2}") for n in range(4)]
    said = {0: "ab", 1: "a", 2: "b", 3: "ba"}
    given = [(one.subject, [answer(one, who, "0") for who in said[n]]) for n, one in enumerate(tasks)]
    given[3][1].append(answer(tasks[3], "admin", "1", adjudicated=True))
    counted = [[one.annotator for one in some] for some in of_whole_instances(given)]
    assert counted == [["a"], ["a"], ["b"], ["b", "admin"]]


def test_asking_survives_json() -> None:
    bivlc = read_protocol("bivlc").of("match")
    assert Asking.model_validate(json.loads(bivlc.model_dump_json())) == bivlc


@pytest.mark.parametrize(
    ("question", "given", "choice", "reason", "agreement"),
    [
        ("best-image", ["2"], "2", "", 1.0),
        ("best-image", ["none"], "none", "none-fits", 1.0),
        ("best-image", ["3", "1"], "1", "", 0.5),  # both took an image: the first of equal ones
        ("best-image", ["none", "3", "1", "3"], "3", "", 0.5),
        ("best-image", ["none", "none", "1"], "none", "none-fits", 2 / 3),
        ("fits-caption", ["photo"], "photo", "", 1.0),
        ("fits-caption", ["both"], "both", "ambiguous", 1.0),
        ("fits-caption", ["generated"], "generated", "ambiguous", 1.0),
        ("fits-caption", ["generated", "both"], "both", "ambiguous", 0.5),  # ambiguous either way
        ("keep-pair", ["keep"], "keep", "", 1.0),
        ("keep-pair", ["drop", "keep", "drop"], "drop", "screened-out", 2 / 3),
        ("match", ["1", "1", "0"], "1", "", 2 / 3),
    ],
)
def test_the_majority_decides(question: str, given: list[str], choice: str, reason: str, agreement: float) -> None:
    one = task(question)
    found = decided(one, [answer(one, f"person-{n}", value) for n, value in enumerate(given)])
    assert found is not None
    assert (found.choice, found.reason, found.agreement, found.votes) == (choice, reason, agreement, len(given))
    assert found.kept == (not reason) and not found.adjudicated


@pytest.mark.parametrize(
    ("question", "given"), [("best-image", ["none", "2"]), ("fits-caption", ["photo", "both"]), ("match", ["0", "1"])]
)
def test_a_tie_waits_for_somebody_who_settles_it(question: str, given: list[str]) -> None:
    one = task(question)
    answers = [answer(one, f"person-{n}", value) for n, value in enumerate(given)]
    assert decided(one, answers, 2) is None and is_tie(one, answers, 2)
    settled = decided(one, [*answers, answer(one, "admin", given[1], adjudicated=True)], 2)
    assert settled is not None and settled.choice == given[1] and settled.adjudicated
    assert (settled.votes, settled.agreement, settled.annotators) == (2, 0.5, ("admin", "person-0", "person-1"))


def test_answers_to_what_is_no_longer_shown_do_not_count() -> None:
    one = task()
    again = replace(one, image_sha256s=(*one.image_sha256s[:3], "f" * 64))
    answers = [answer(one, "person", "2")]
    assert again.binding != one.binding
    assert decided(one, answers) is not None and decided(again, answers) is None
    assert decided(one, [answer(one, "person", "7")]) is None, "it has no eighth image"
    assert decided(task(number=1), answers) is None, "another task"


def test_only_a_change_of_what_is_shown_changes_the_binding() -> None:
    one = task()
    same = replace(one, priority=0.5, truth="1", group="other", split="train", image_tars=("x",) * 4)
    assert same.binding == one.binding
    changed = [replace(one, question="match"), replace(one, texts=("else",)), replace(one, images=one.images[::-1])]
    assert one.binding not in {other.binding for other in changed}


def test_overlap_waits_for_enough_people() -> None:
    one = task()
    first, second = answer(one, "a", "2"), answer(one, "b", "2")
    assert decided(one, [first], 2) is None and not is_tie(one, [first], 2)
    assert decided(one, [first, second], 2) is not None
    share = sum(answers_needed(f"people-{n}", 0.3, 3) == 3 for n in range(2000)) / 2000
    assert 0.25 < share < 0.35
    assert {answers_needed(f"people-{n}", 0.0, 3) for n in range(100)} == {1}
    assert {answers_needed(f"people-{n}", 1.0, 3) for n in range(100)} == {3}


def test_of_several_who_settle_a_tie_the_last_word_counts_unless_it_is_stale() -> None:
    one = task()
    again = replace(one, images=one.images[::-1])
    tie = [answer(one, "a", "none"), answer(one, "b", "2")]
    settled = [
        answer(one, "admin", "2", adjudicated=True, at="1"),
        answer(one, "boss", "none", adjudicated=True, at="2"),
    ]
    found = decided(one, [*tie, *settled[::-1]], 2)
    assert found is not None and (found.choice, found.reason, found.agreement) == ("none", "none-fits", 0.5)
    stale = answer(again, "admin", "2", adjudicated=True)
    assert decided(one, [*tie, stale], 2) is None and is_tie(one, [*tie, stale], 2)


def test_a_tie_on_a_gold_task_is_settled_by_what_is_known() -> None:
    one = task()
    tie = [answer(one, "a", "none"), answer(one, "b", "2")]
    assert is_tie(one, tie, 2) and not is_tie(one, tie, 2, gold="2")
    for gold, reason in (("2", ""), ("none", "none-fits")):
        found = decided(one, tie, 2, gold)
        assert found is not None
        assert (found.choice, found.reason, found.agreement, found.adjudicated) == (gold, reason, 0.5, False)
    most = decided(one, [*tie, answer(one, "c", "1")], 2, "none")
    assert most is not None and most.choice == "1", "a majority decides as of any task"


def test_a_share_of_decisions_is_enough_whatever_rounding_does() -> None:
    assert [decisions_needed(*of) for of in ((0.1, 30), (0.1, 31), (1.0, 7), (0.001, 5), (1.0, 0))] == [3, 4, 7, 1, 0]


def test_the_reason_most_people_gave_is_told() -> None:
    one = task("keep-pair")
    why = ("fits-both", "bad-image", "fits-both")
    found = decided(one, [answer(one, f"person-{n}", "drop", reason=code) for n, code in enumerate(why)])
    assert found is not None and found.detail == "fits-both"
    tie = [answer(one, "a", "drop", reason="bad-image"), answer(one, "b", "keep")]
    settled = {"annotator": "admin", "value": "drop", "adjudicated": True}
    details = [decided(one, [*tie, answer(one, **settled, reason=reason)], 2) for reason in ("", "offensive")]
    assert [made and made.detail for made in details] == ["bad-image", "offensive"], "the admin's own comes first"


@pytest.mark.parametrize("name", QUESTIONS.kinds())
def test_every_question_can_be_shown(name: str) -> None:
    question, one = question_of(name), task(name)
    layout = question.layout(one)
    assert question.name == name and question.title and question.instructions and question.examples
    assert len(set(layout.values)) == len(layout.values) >= 2
    assert {*question.drops} <= {*layout.values}
    shown = [*layout.images, *(option.image for option in layout.options if option.image is not None)]
    assert sorted(shown) == list(range(len(one.images))), "every image is shown once"
    texts = [*layout.texts, *(option.text for option in layout.options if option.text is not None)]
    assert sorted(texts) == list(range(len(one.texts)))


def test_a_match_asks_for_captions_or_for_images() -> None:
    two = {"images": ("photo",), "image_tars": ("",), "image_sha256s": ("",), "texts": ("one", "other")}
    layout = question_of("match").layout(task("match", **two))
    assert layout.images == (0,) and [one.text for one in layout.options] == [0, 1]
