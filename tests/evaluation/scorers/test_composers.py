"""Models of an image and a text together: GeneCIS's baselines and specific solutions, and published Combiners."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch

from tests.evaluation.scorers.opened import FAST, TEXTS, encoder, queries
from tests.tiny_encoders import images, open_clip_config, open_clip_network
from twinset.contracts.errors import WrongUse
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import Composer, NotApplicable, unit


def test_baselines_combine_features_that_are_not_normalised(tmp_path: Path) -> None:
    config = open_clip_config(tmp_path)
    inner = encoder(f"random:{config}")
    image = inner.image_features([inner.prepare(picture) for picture in images(3)])
    text = inner.text_features(TEXTS)
    for kind, expected in {"image-only": image, "text-only": text, "image+text": (image + text) / 2}.items():
        rule = open_model(f"{kind}:random:{config}", FAST)
        assert isinstance(rule, Composer) and rule.encoder.digest() == inner.digest()
        assert np.allclose(queries(rule, images(3), TEXTS), unit(expected), atol=1e-6)
    assert not np.allclose(unit((unit(image) + unit(text)) / 2), unit((image + text) / 2), atol=1e-3)


def combiner(features: int = 8, seed: int = 0) -> dict[str, torch.Tensor]:
    """Weights of a Combiner by their published names."""
    drawn = torch.Generator().manual_seed(seed)
    sizes = {
        "text_projection_layer": (12, features),
        "image_projection_layer": (12, features),
        "combiner_layer": (20, 24),
        "output_layer": (features, 20),
        "dynamic_scalar.0": (20, 24),
        "dynamic_scalar.3": (1, 20),
    }
    return {
        f"{name}.{part}": torch.randn(shape if part == "weight" else shape[:1], generator=drawn)
        for name, shape in sizes.items()
        for part in ("weight", "bias")
    }


@pytest.mark.parametrize("layout", ["plain", "GeneCIS", "CLIP4Cir"])
def test_a_published_combiner_gives_its_formula(tmp_path: Path, layout: str) -> None:
    weights, clip = combiner(), open_clip_network(6)
    files = {
        "plain": {f"module.{name}": value for name, value in weights.items()},
        "GeneCIS": {"clip_model": clip.state_dict(), "combiner": weights, "epoch": 3},
        "CLIP4Cir": {"epoch": 3, "Combiner": weights},
    }
    torch.save(files[layout], tmp_path / "combiner.pt")
    torch.save(clip.state_dict(), tmp_path / "clip.pt")
    clip_file = tmp_path / ("combiner.pt" if layout == "GeneCIS" else "clip.pt")
    rule = open_model(f"combiner:{tmp_path / 'combiner.pt'}:open_clip:{open_clip_config(tmp_path)}:{clip_file}", FAST)
    assert isinstance(rule, Composer)
    image, text = torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(0))

    def linear(name: str, read: torch.Tensor) -> torch.Tensor:
        return read @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    projected = [linear("text_projection_layer", text).relu(), linear("image_projection_layer", image).relu()]
    z = torch.cat(projected, 1)
    share = linear("dynamic_scalar.3", linear("dynamic_scalar.0", z).relu()).sigmoid()
    expected = linear("output_layer", linear("combiner_layer", z).relu()) + share * text + (1 - share) * image
    assert np.allclose(rule.compose(image.numpy(), text.numpy(), []), unit(expected.numpy()), atol=1e-5)


def test_a_combiner_of_another_clip_is_refused(tmp_path: Path) -> None:
    torch.save(combiner(features=9), tmp_path / "c.pt")
    rule = open_model(f"combiner:{tmp_path / 'c.pt'}:random:{open_clip_config(tmp_path)}", FAST)
    with pytest.raises(WrongUse, match=r"reads features of 9 numbers, and random:.* gives 8"):
        assert isinstance(rule, Composer) and queries(rule, images(1), TEXTS[:1])


TYPES = {"Color": ["red", "olive green", "blue"], "shape": ["round", "square"], "none": []}


def rule(kind: str, path: Path, content: object) -> Any:
    (path / "file.json").write_text(json.dumps(content))
    opened = open_model(f"{kind}:{path / 'file.json'}:random:{open_clip_config(path)}", FAST)
    assert isinstance(opened, Composer)
    return opened


def test_the_attribute_that_fits_the_reference_best_is_the_query(tmp_path: Path) -> None:
    asked, inner = rule("focus-attribute", tmp_path, TYPES), encoder(f"random:{open_clip_config(tmp_path)}")
    shown = images(4)
    composed = queries(asked, shown, ["color", "shape", " Color", "shape"])
    seen = inner.encode_images(shown)
    for at, kind in enumerate(("Color", "shape", "Color", "shape")):
        words = inner.encode_texts(sorted(TYPES[kind]))
        assert np.allclose(composed[at], words[int((words @ seen[at]).argmax())], atol=1e-6)
    with pytest.raises(NotApplicable, match=r"'red' is no type of attributes in .*--only focus-attribute"):
        queries(asked, shown[:1], ["red"])


def test_the_predicted_category_follows_the_asked_attribute_in_all_templates(tmp_path: Path) -> None:
    names = ["dog", "train"]
    vaw = [{"object_name": name, "image_id": "1"} for name in ("train", " Dog ", "train")]
    asked, inner = rule("change-attribute", tmp_path, vaw), encoder(f"random:{open_clip_config(tmp_path)}")

    def ensemble(name: str) -> Any:
        return unit(inner.encode_texts([template(name) for template in open_clip.OPENAI_IMAGENET_TEMPLATES]).mean(0))

    shown, conditions = images(3), ["olive green", "blue", "old"]
    best = (inner.encode_images(shown) @ np.stack([ensemble(name) for name in names]).T).argmax(1)
    expected = [ensemble(f"{condition} {names[at]}") for condition, at in zip(conditions, best, strict=True)]
    assert np.allclose(queries(asked, shown, conditions), expected, atol=1e-5)
