"""What open_clip_config.json of a stranger's folder may name, and what is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.evaluation.scorers.tiny_models import save_tokenizer
from tests.models.model_kinds import HOSTILE, evaluated, filtered, save_open_clip, scorer
from twinset.contracts.errors import WrongUse


def saved(at: Path, part: str, settings: dict[str, Any]) -> Path:
    """A folder of open_clip with further settings in a part of its configuration."""
    save_open_clip(at)
    path = at / "open_clip_config.json"
    config = json.loads(path.read_bytes())
    (config if part in config else config["model_cfg"])[part] |= settings
    path.write_text(json.dumps(config))
    return at


@pytest.mark.parametrize("opened", [filtered, scorer("clip"), evaluated("open_clip")])
@pytest.mark.parametrize(
    ("part", "settings", "said"),
    [
        (
            "text_cfg",
            {"hf_tokenizer_name": "own/words", "tokenizer_kwargs": {"trust_remote_code": True}},
            "tokenizer_kwargs has 'trust_remote_code'",
        ),
        ("text_cfg", {"tokenizer_kwargs": {"bpe_path": "/etc/hostname"}}, "tokenizer_kwargs has 'bpe_path'"),
        ("text_cfg", {"tokenizer_kwargs": ["clean"]}, "tokenizer_kwargs has "),
        ("text_cfg", {"hf_model_name": "own/bert"}, "hf_model_name"),
        ("vision_cfg", {"timm_model_name": "hf-hub:own/vit"}, "is the address 'hf-hub:own/vit'"),
        ("vision_cfg", {"timm_model_name": "local-dir:/elsewhere"}, "is the address 'local-dir:/elsewhere'"),
        ("text_cfg", {"hf_tokenizer_name": "/elsewhere"}, "'/elsewhere' leads out of the model's folder"),
        ("text_cfg", {"hf_tokenizer_name": "words/../../elsewhere"}, "elsewhere' leads out of the model's folder"),
        ("text_cfg", {"hf_tokenizer_name": "hf-hub:own/words"}, "there is no model folder hf-hub:own/words"),
    ],
)
def test_a_configuration_of_open_clip_hands_on_nothing_that_runs_code_or_asks_a_hub(
    tmp_path: Path, opened: Callable[[Path], Any], part: str, settings: dict[str, Any], said: str
) -> None:
    """S1: ``tokenizer_kwargs`` of a filter's open_clip_config.json ran a Python file of its folder."""
    at = saved(tmp_path / "model", part, settings)
    if "tokenizer_kwargs" in settings:
        words = {"auto_map": {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}, "tokenizer_class": "Evil"}
        (at / "tokenizer_config.json").write_text(json.dumps(words))
        (at / "evil.py").write_text(HOSTILE.format(marker=tmp_path / "was_run"))
    with pytest.raises(WrongUse, match=said):
        opened(at)
    assert not (tmp_path / "was_run").exists()


def test_a_transform_of_open_clip_that_is_unknown_is_refused(tmp_path: Path) -> None:
    at = saved(tmp_path / "model", "preprocess_cfg", {"interpolation": "evil"})
    with pytest.raises(WrongUse, match="cannot be loaded"):
        evaluated("open_clip")(at)


def test_a_tokenizer_beside_a_configuration_of_open_clip_is_read(tmp_path: Path) -> None:
    words = {"hf_tokenizer_name": "own/words", "tokenizer_kwargs": {"clean": "canonicalize"}}
    at = saved(tmp_path / "model", "text_cfg", words)
    save_tokenizer(at, "siglip")
    first, second = evaluated("open_clip")(at).text_features(["a red cat", "A  red, cat!"])
    assert first.tolist() == second.tolist()
    before, written = evaluated("open_clip")(at).digest(), json.loads((at / "tokenizer.json").read_bytes())
    (at / "tokenizer.json").write_text(json.dumps({**written, "normalizer": {"type": "Lowercase"}}))
    assert evaluated("open_clip")(at).digest() != before
