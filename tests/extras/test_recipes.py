"""VisMin's recipe on small models and a painted photo; nothing is drawn from captions without derivatives."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import twinset
from tests.generators.test_terms_survive import ADA, CLOSED, negatives, settings
from tests.models.visual_questions.tiny_models import save_blip
from twinset.contracts.errors import WrongUse

SMALL = "{kind: diffusers, model: small, steps: 2}"
NEGATIVES = '{kind: replayed-negatives, captions: "miniature:small_world/negatives.csv", licence: CC0-1.0}'


@pytest.mark.slow
def test_vismin(tmp_path: Path) -> None:
    pixels = np.full((256, 320, 3), 120, np.uint8)
    pixels[60:110, 40:90], pixels[60:110, 200:250] = (190, 40, 40), (40, 60, 190)
    Image.fromarray(pixels).save(tmp_path / "7.jpg", quality=95)
    boxes = [{"image_id": 7, "category_id": n, "bbox": [left, 60, 50, 50]} for n, left in ((1, 40), (2, 200))]
    categories = [{"id": 1, "name": "car"}, {"id": 2, "name": "dog"}]
    whole = {"images": [{"id": 7, "file_name": "7.jpg"}], "categories": categories, "annotations": boxes}
    (tmp_path / "instances.json").write_text(json.dumps(whole))
    row = {"image": "7.jpg", "caption": "A red car.", "negative_caption": "A green car."}
    (tmp_path / "negatives.json").write_text(json.dumps([{**row, "type": "replace", "subtype": "att"}]))
    own = {"kind": "replayed-negatives", "captions": str(tmp_path / "negatives.json"), "licence": "CC0-1.0"}
    blip = f"{{kind: vqa, model: {save_blip(tmp_path / 'blip')}}}"
    given = (
        f"stages.negatives.source={json.dumps(own)}",
        f"stages.position-negatives.source={NEGATIVES}",
        "stages.position-prompts.source.suffix=''",
        "stages.position-images.source.suffix=''",
        f"stages.position-images.source.engine={SMALL}",
        "stages.position-verified.source.engine={kind: mylab-nothing-red}",
        "subsets.vismin-position.source.verified=null",
        *(
            f"stages.{name}-{setting}"
            for name in ("object", "attribute", "count")
            for setting in (
                f"edits.source.photos={tmp_path}",
                f"edits.source.instances={tmp_path / 'instances.json'}",
                "edits.source.engine={kind: mylab-fill}",
                f"verified.source.engine={blip}",
            )
        ),
    )
    twinset.build("vismin", tmp_path / "out", settings=given)
    kept = {name: counts["kept"] for name, counts in twinset.status(tmp_path / "out")["subsets"].items()}
    assert kept["vismin-attribute"] == kept["vismin-object"] == kept["vismin-count"] == 0
    screened = json.loads((tmp_path / "out/vismin-attribute/_meta/screening.json").read_text())
    assert screened["model"] and sum(screened["dropped"].values()) == 1 and not screened["kept"]
    assert kept["vismin-position"]
    parts = twinset.verify(tmp_path / "out", media=True)["subsets"]
    assert [problem for part in parts.values() for problem in part["problems"]] == []


def test_nothing_is_drawn_from_what_allows_no_derivatives(tmp_path: Path) -> None:
    context, given = negatives(tmp_path, [ADA, CLOSED]), {"negatives": "n", "model": "/m", "licence": "MIT"}
    with pytest.raises(WrongUse, match=r"without derivatives \(https://b\.example/2\).*allow_no_derivatives: true"):
        list(settings("drawn-negatives", **given).open(context).plan())
    allowed = settings("drawn-negatives", **given, allow_no_derivatives=True).open(context).plan()
    assert {(candidate.licence, candidate.credit) for candidate in allowed} == {
        ("CC-BY-SA-2.0 AND MIT", "Ada (CC-BY-SA-2.0)"),
        ("CC-BY-ND-2.0 AND MIT", "Bob (CC-BY-ND-2.0)"),
    }
