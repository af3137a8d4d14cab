"""Counts and figures that others published, reached by the commands that users call.

The recipes of edited and drawn twins build on the small models and a painted photo.
Nothing is drawn from negative captions that allow no derivatives, and what COCO says of its photographs is read.
"""

import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

import twinset
from extras.tests.killed_builds import kill_midway, tars
from tests.generators.test_terms_survive import ADA, CLOSED, COCO, STATED, negatives, settings
from tests.guard.test_oracles import at_hand, printed
from tests.models.visual_questions.tiny_models import save_blip
from twinset.contracts.errors import WrongUse
from twinset.contracts.licences.terms import Terms
from twinset.contracts.parts import LeftOut
from twinset.contracts.recipe import load_recipe
from twinset_extras.edited_photos.places import Instances


@pytest.mark.parametrize(
    ("name", "folder", "metrics", "within"), [("tifa", "benchmarks/tifa", 10, 0.00051), ("dsg", "dsg", 3, 0.001)]
)
def test_agreement_of_metrics_with_people(
    name: str, folder: str, metrics: int, within: float, capsys: pytest.CaptureFixture[str]
) -> None:
    checks = printed(capsys, "eval", "agreement", f"{name}={at_hand(folder)}", "--resamples", "0")["checks"]
    published = {metric: one["published"] for metric, one in checks.items() if one["published"]}
    assert len(published) == metrics
    for metric, figures in published.items():
        assert checks[metric]["n"] == 800
        assert {figure: checks[metric][figure] for figure in figures} == pytest.approx(figures, abs=within)


SMALL = "{kind: diffusers, model: small, steps: 2}"
NEGATIVES = '{kind: replayed-negatives, captions: "miniature:small_world/negatives.csv", licence: CC0-1.0}'


def built(recipe: str, out: Path, *settings: str) -> dict[str, int]:
    """How many pairs each subset keeps."""
    twinset.build(recipe, out, settings=settings)
    return {name: one["kept"] for name, one in twinset.status(out)["subsets"].items()}


@pytest.mark.slow
def test_vismin(tmp_path: Path) -> None:
    pixels = np.full((256, 320, 3), 120, np.uint8)
    pixels[60:110, 40:90], pixels[60:110, 200:250] = (190, 40, 40), (40, 60, 190)
    Image.fromarray(pixels).save(tmp_path / "7.jpg", quality=95)
    boxes = [{"image_id": 7, "category_id": n, "bbox": [left, 60, 50, 50]} for n, left in ((1, 40), (2, 200))]
    categories = [{"id": 1, "name": "car"}, {"id": 2, "name": "dog"}]
    whole = {"images": [{"id": 7, "file_name": "7.jpg"}], "categories": categories, "annotations": boxes}
    (tmp_path / "instances.json").write_text(json.dumps(whole))
    row = {
        "image": "7.jpg",
        "caption": "A red car.",
        "negative_caption": "A green car.",
        "type": "replace",
        "subtype": "att",
    }
    (tmp_path / "negatives.json").write_text(json.dumps([row]))
    own = {"kind": "replayed-negatives", "captions": str(tmp_path / "negatives.json"), "licence": "CC0-1.0"}
    blip = f"{{kind: vqa, model: {save_blip(tmp_path / 'blip')}}}"
    kept = built(
        "vismin",
        tmp_path / "out",
        f"stages.negatives.source={json.dumps(own)}",
        f"stages.position-negatives.source={NEGATIVES}",
        "stages.position-prompts.source.suffix=''",
        "stages.position-images.source.suffix=''",
        f"stages.position-images.source.engine={SMALL}",
        "stages.position-verified.source.engine={kind: mylab-nothing-red}",
        "subsets.vismin-position.source.verified=null",
        *(f"stages.{name}-edits.source.photos={tmp_path}" for name in ("object", "attribute", "count")),
        *(
            f"stages.{name}-edits.source.instances={tmp_path / 'instances.json'}"
            for name in ("object", "attribute", "count")
        ),
        *(f"stages.{name}-verified.source.engine={blip}" for name in ("object", "attribute", "count")),
        *(f"stages.{name}-edits.source.engine={{kind: mylab-fill}}" for name in ("object", "attribute", "count")),
    )
    assert kept["vismin-attribute"] == kept["vismin-object"] == kept["vismin-count"] == 0
    told = json.loads((tmp_path / "out/vismin-attribute/_meta/screening.json").read_text())
    assert told["model"] and sum(told["dropped"].values()) == 1 and not told["kept"], "weights at random know no cars"
    assert kept["vismin-position"]
    parts = twinset.verify(tmp_path / "out", media=True)["subsets"]
    assert [problem for part in parts.values() for problem in part["problems"]] == []


@pytest.mark.slow
def test_coco_counterfactuals(tmp_path: Path) -> None:
    source = "{kind: drawn-negatives, negatives: negatives, model: small, steps: 2}"
    drift = "subsets.coco-counterfactuals.filters=[{kind: drift, difference: 60, shift: 9}]"
    settings = (f"stages.negatives.source={NEGATIVES}", f"subsets.coco-counterfactuals.source={source}", drift)
    kept = built("coco-counterfactuals", tmp_path / "out", *settings)
    assert kept["coco-counterfactuals"] >= 4  # two steps may draw another scene


@pytest.mark.slow
def test_img_diff_killed_and_resumed_is_the_same(tmp_path: Path) -> None:
    settings = (
        f"stages.negatives.source={NEGATIVES}",
        "stages.pairs.source={kind: drawn-negatives, negatives: negatives, model: small, steps: 4}",
        "stages.pairs.filters=[]",
        "subsets.img-diff.source.engine={kind: unasked}",
        "subsets.img-diff.shard_size=1",
    )
    kept = built("img-diff", tmp_path / "whole", *settings)
    assert kept["img-diff"] >= 2  # a ball is blue, and a star is a heart
    recipe = load_recipe("img-diff", settings).model_dump(mode="json", exclude_defaults=True)
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(recipe))
    kill_midway(tmp_path, "killed", "img-diff")
    twinset.build(str(tmp_path / "recipe.yaml"), tmp_path / "killed")
    whole = tars(tmp_path, "whole", "img-diff")
    assert len(whole) == kept["img-diff"] and tars(tmp_path, "killed", "img-diff") == whole


def test_nothing_is_drawn_from_what_allows_no_derivatives(tmp_path: Path) -> None:
    context, given = negatives(tmp_path, [ADA, CLOSED]), {"negatives": "n", "model": "/m", "licence": "MIT"}
    with pytest.raises(WrongUse, match=r"without derivatives \(https://b\.example/2\).*allow_no_derivatives: true"):
        list(settings("drawn-negatives", **given).open(context).plan())
    allowed = settings("drawn-negatives", **given, allow_no_derivatives=True).open(context).plan()
    assert {(one.licence, one.credit) for one in allowed} == {
        ("CC-BY-SA-2.0 AND MIT", "Ada (CC-BY-SA-2.0)"),
        ("CC-BY-ND-2.0 AND MIT", "Bob (CC-BY-ND-2.0)"),
    }


def test_what_instances_say_of_photos_is_read(tmp_path: Path) -> None:
    annotations = [{"image_id": one, "category_id": 1, "bbox": [1, 1, 5, 5]} for one in STATED]
    whole = {**COCO, "categories": [{"id": 1, "name": "car"}], "annotations": annotations}
    (tmp_path / "i.json").write_text(json.dumps(whole))
    instances = Instances(tmp_path / "i.json", LeftOut())
    assert [instances.terms_of(f"{one}.jpg", "") for one in STATED] == [*STATED.values()]
    assert instances.terms_of("x.jpg", "1") == STATED[1] and instances.terms_of("x.jpg", "x") == Terms()
