"""In which words, blocks and instances people are asked."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.generators.decisions.tasks import answer, task
from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import load_recipe
from twinset.generators.decisions.protocol import Asking, check_labels, of_whole_instances, own_words, read_protocol
from twinset.generators.decisions.questions import QUESTIONS, Match, question_of
from twinset.generators.human_baseline import HumanBaseline

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
