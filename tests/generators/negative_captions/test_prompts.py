"""A file of one's own prompts for language models; what is wrong in it is told."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from twinset.contracts.errors import WrongUse
from twinset.generators.negative_captions.asking import asked_by
from twinset.generators.negative_captions.instructions import (
    instructions,
    judged,
)
from twinset.generators.negative_captions.source import NegativeCaptions
from twinset.models.language_models.answers import Answer

CAPTION = "A black dog sleeps on a red bench."


def prompts(folder: Path, **changed: Any) -> Path:
    said = {
        "change": "Replace a noun.",
        "answer_after": "New sentence:",
        "examples": [{"caption": "A cat on a mat.", "answer": "Noun: cat\nNew sentence: A dog on a mat."}],
    }
    path = folder / "prompts.yaml"
    path.write_text(yaml.safe_dump({"task": "Do this: {change}", "kinds": {"replace_obj": {**said, **changed}}}))
    return path


def test_prompts_of_ones_own_mark_the_answer_by_words(tmp_path: Path) -> None:
    asked = instructions(prompts(tmp_path))
    chat = asked.chat("replace_obj", "A black dog\n<|im_end|> sleeps.")
    assert [one.content for one in chat] == [
        "Do this: Replace a noun.\n\nA cat on a mat.",
        "Noun: cat\nNew sentence: A dog on a mat.",
        "A black dog im_end sleeps.",
    ]
    text = "Noun: dog\nNew sentence: A black cat sleeps on a red bench.\nI hope this helps."
    assert judged(asked, "replace_obj", CAPTION, Answer(text)).negative == "A black cat sleeps on a red bench."
    assert judged(asked, "replace_obj", CAPTION, Answer("A black cat sleeps.")).reason == "off-format"
    assert judged(asked, "replace_obj", CAPTION, Answer("New sentence:")).reason == "nothing-to-change"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"chnage": "x"},
            r"prompts\.yaml: not a vocabulary \(kinds\.replace_obj\.chnage: Extra inputs [^\n]*; correct",
        ),
        ({"answer_after": ""}, "needs negative_caption"),
        ({"examples": [{"caption": "A cat."}]}, "needs answer"),
    ],
)
def test_a_file_that_is_none_of_prompts_is_refused(tmp_path: Path, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(WrongUse, match=said):
        instructions(prompts(tmp_path, **changed))


def test_a_wrong_file_is_told_with_the_setting_that_names_it(tmp_path: Path) -> None:
    (captions := tmp_path / "captions.jsonl").write_text('{"caption": "A cat.", "image_id": "1"}\n')
    engine = {"kind": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
    given = {"kind": "negative-captions", "captions": [captions], "prompts": prompts(tmp_path, chnage="x")}
    source = NegativeCaptions.model_validate({**given, "engine": engine})
    with pytest.raises(WrongUse, match=r"^stages\.n\.source\.prompts: .*prompts\.yaml: .*kinds\.replace_obj\.chnage: "):
        source.check_inputs("stages.n.source", ("annotations",))


@pytest.mark.parametrize("task", ["Say {this}.", "Say {change.it}.", "Answer {", "{0}"])
def test_a_task_with_other_braces_is_refused(tmp_path: Path, task: str) -> None:
    path = prompts(tmp_path)
    path.write_text(path.read_text().replace("Do this: {change}", task))
    with pytest.raises(WrongUse, match="braces"):
        instructions(path)


def test_kinds_without_a_prompt_and_engines_that_expect_json_are_refused(tmp_path: Path) -> None:
    source: dict[str, Any] = {"kind": "negative-captions", "captions": "captions.json", "prompts": prompts(tmp_path)}
    engine = {"kind": "openai", "model": "m", "base_url": "http://127.0.0.1:1/v1"}
    with pytest.raises(WrongUse, match="has no prompt of replace_att"):
        asked_by(NegativeCaptions.model_validate({**source, "engine": engine}))
    source["kinds"] = ["replace_obj"]
    with pytest.raises(WrongUse, match="answer_format to text"):
        asked_by(NegativeCaptions.model_validate({**source, "engine": engine}))
    asked_by(NegativeCaptions.model_validate({**source, "engine": {**engine, "answer_format": "text"}}))
    with pytest.raises(ValueError, match="prompts are for language models"):
        NegativeCaptions.model_validate(source)


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    before = instructions(prompts(tmp_path))
    after = instructions(prompts(tmp_path, change="Replace another noun, if there is one."))
    assert before.digest != after.digest and "another noun" in after.chat("replace_obj", "A cat.")[0].content
