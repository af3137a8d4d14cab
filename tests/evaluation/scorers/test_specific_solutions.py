"""GeneCIS's specific solutions for attributes: the text that each searches the gallery with."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import open_clip  # type: ignore[import-untyped]
import pytest

from tests.evaluation.scorers.opened import FAST, encoder
from tests.evaluation.scorers.tiny_models import images, open_clip_config
from twinset.contracts.errors import WrongUse
from twinset.evaluation.scorers.kinds import check_model, open_model
from twinset.evaluation.scorers.specific_solutions import read_categories
from twinset.models.encoders.contract import Composer, NotApplicable, unit

TYPES = {"Color": ["red", "olive green", "blue"], "shape": ["round", "square"], "none": []}


def rule(kind: str, path: Path, content: object) -> Any:
    (path / "file.json").write_text(json.dumps(content))
    opened = open_model(f"{kind}:{path / 'file.json'}:random:{open_clip_config(path)}", FAST)
    assert isinstance(opened, Composer)
    return opened


def test_the_attribute_that_fits_the_reference_best_is_the_query(tmp_path: Path) -> None:
    asked, inner = rule("focus-attribute", tmp_path, TYPES), encoder(f"random:{open_clip_config(tmp_path)}")
    shown = images(4)
    found = asked.queries(shown, ["color", "shape", " Color", "shape"])
    seen = inner.encode_images(shown)
    for at, kind in enumerate(("Color", "shape", "Color", "shape")):
        words = inner.encode_texts(sorted(TYPES[kind]))
        assert np.allclose(found[at], words[int((words @ seen[at]).argmax())], atol=1e-6)
    with pytest.raises(NotApplicable, match=r"'red' is no type of attributes in .*--only focus-attribute"):
        asked.queries(shown[:1], ["red"])
    with pytest.raises(NotApplicable, match="'none' is no type"):
        asked.queries(shown[:1], ["none"])


def test_the_predicted_category_follows_the_asked_attribute_in_all_templates(tmp_path: Path) -> None:
    names = ["train", "dog"]
    asked, inner = rule("change-attribute", tmp_path, names), encoder(f"random:{open_clip_config(tmp_path)}")

    def said(name: str) -> Any:
        return unit(inner.encode_texts([template(name) for template in open_clip.OPENAI_IMAGENET_TEMPLATES]).mean(0))

    shown, conditions = images(3), ["olive green", "blue", "old"]
    best = (inner.encode_images(shown) @ np.stack([said(name) for name in sorted(names)]).T).argmax(1)
    expected = [said(f"{one} {sorted(names)[at]}") for one, at in zip(conditions, best, strict=True)]
    assert np.allclose(asked.queries(shown, conditions), expected, atol=1e-5)


def test_names_are_a_list_or_vaws_annotations(tmp_path: Path) -> None:
    path = tmp_path / "names.json"
    path.write_text(
        json.dumps([{"object_name": "dog", "image_id": "1"}, {"object_name": " cat "}, {"object_name": "dog"}])
    )
    assert read_categories(path) == ["cat", "dog"]
    for wrong in ([], {}, [1], [{"name": "dog"}], ["", " "]):
        path.write_text(json.dumps(wrong))
        with pytest.raises(WrongUse, match="not a JSON list of names, or VAW's annotations"):
            read_categories(path)


def test_another_file_is_another_model(tmp_path: Path) -> None:
    digests = {rule("focus-attribute", tmp_path, TYPES | {"size": ["large"] * n}).digest() for n in range(1, 3)}
    digests |= {rule("change-attribute", tmp_path, ["dog"]).digest()}
    assert len(digests) == 3
    for text in ("focus-attribute:nowhere.json:random:ViT-B-32", f"change-attribute:{tmp_path / 'file.json'}"):
        with pytest.raises(WrongUse, match=r"there is no file|write change-attribute:NAMES\.json:ENCODER"):
            check_model(text)
