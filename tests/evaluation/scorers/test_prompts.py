"""A model that is asked by a prompt is another model with each prompt; wrong prompts are named."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.evaluation.scorers.shown_images import chooser
from twinset.contracts.errors import WrongUse
from twinset.evaluation.scorers.kinds import check_model, open_model, with_prompts
from twinset.models.encoders.contract import Running


def test_each_prompt_is_a_model_and_others_are_left_as_they_are(
    environment: Callable[..., None], tmp_path: Path
) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text("mine: {version: 3, asks: choice, source: me, text: '{caption1} or {caption2}?'}")
    environment("http://127.0.0.1:1/v1")
    models = ["openai-chooser:m", "random:ViT-B-32"]
    assert with_prompts(models, ["sugarcrepe", str(own)]) == [
        *("openai-chooser/sugarcrepe:m", f"openai-chooser/{own}:m", "random:ViT-B-32")
    ]
    asking = chooser(f"openai-chooser/{own}:m")
    assert asking.words == "mine 3" and asking.directions == ("text",)
    for text, problem in (
        ("openai-chooser/vqascore:m", "the prompt vqascore asks for yes, not choice"),
        ("openai-chooser/options:m", "a server does not say how likely options are"),
        ("openai-chooser/none:m", "there is no prompt 'none'; name one of choose, "),
        (f"openai-chooser/{tmp_path}/no.yaml:m", "not a file of prompts"),
        ("random/vqascore:ViT-B-32", "random is not asked by a prompt"),
    ):
        with pytest.raises(WrongUse, match=problem):
            check_model(text)
    with pytest.raises(WrongUse, match="--prompt eqben: none of the models is asked by a prompt"):
        with_prompts(models[1:], ["eqben"])
    for wrong, problem in (
        ("a: {version: 1, asks: choice, source: s, text: '{caption1}'}", "text: must have {caption1} and {caption2}"),
        ("a: {version: 1, asks: choice, source: s}", "asks nothing; write text, image or pairing"),
        ("a: {version: 1, asks: 'yes', source: s, text: '{caption}', prize: 1}", "prize: Extra inputs"),
        ("a: &b {version: 1}", "not a file of prompts|Field required|asks"),
        ("[1", "not a file of prompts"),
    ):
        (tmp_path / f"{len(wrong)}.yaml").write_text(wrong)
        with pytest.raises(WrongUse, match=problem):
            check_model(f"openai-chooser/{tmp_path}/{len(wrong)}.yaml:m")


def test_models_are_told_apart_by_what_is_asked(environment: Callable[..., None]) -> None:
    environment("http://127.0.0.1:1/v1")
    texts = ["openai-chooser:m", "openai-chooser/eqben:m", "openai-yesno:m", "openai-vqascore:m", "openai-chooser:n:7b"]
    assert len({open_model(one, Running()).digest() for one in texts}) == 5
    assert chooser(texts[-1]).speaker.identity[1] == "n:7b"
