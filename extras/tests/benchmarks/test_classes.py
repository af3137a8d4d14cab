"""Zero-shot classification: names of classes, open_clip's templates, and its own classifier."""

from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch
from open_clip.zero_shot_metadata import IMAGENET_CLASSNAMES, OPENAI_IMAGENET_TEMPLATES

from tests.evaluation.benchmarks.made_files import picture, put
from tests.evaluation.benchmarks.made_layouts import queries
from tests.evaluation.scorers.tiny_models import open_clip_config
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.examples import Ensemble
from twinset.evaluation.features.similarities import ByFeatures
from twinset.evaluation.run import similarities_of
from twinset.evaluation.scorers.kinds import open_model
from twinset.models.encoders.contract import Running


def classes(root: Path, names: list[str]) -> None:
    for number, name in enumerate(names):
        put(root / "val" / name / f"{number}.JPEG", picture(number))


def test_scores_are_those_of_open_clips_zero_shot_classifier(tmp_path: Path) -> None:
    classes(tmp_path, ["a_cup", "zebra"])
    found = queries(open_benchmark("imagenet", tmp_path))
    model, running = f"random:{open_clip_config(tmp_path / 'model')}", Running()
    ours = similarities_of(open_model(model, running), tmp_path / "cache", running)
    assert isinstance(ours, ByFeatures) and ours.prepare(found) == {}
    torch.manual_seed(0)
    scorer = ours.encoder
    names = ["a cup", "zebra"]
    with torch.inference_mode():
        each = [
            np.stack(list(scorer.text_features([template(name) for template in OPENAI_IMAGENET_TEMPLATES])))
            for name in names
        ]
    normed = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in each]
    means = np.stack([one.mean(0) / np.linalg.norm(one.mean(0)) for one in normed])
    image = scorer.image_features([scorer.prepare(_opened(found[0].image.read()))])[0]  # type: ignore[union-attr]
    assert ours.gallery(found[0]) == pytest.approx(means @ (image / np.linalg.norm(image)), abs=1e-5)
    ours.close()


def _opened(content: bytes):  # type: ignore[no-untyped-def]
    import io

    from PIL import Image

    return Image.open(io.BytesIO(content)).convert("RGB")


def test_numbers_of_imagenet_get_open_clips_names_where_all_are_there(tmp_path: Path) -> None:
    assert open_clip.__version__ and len(IMAGENET_CLASSNAMES) == 1000
    classes(tmp_path, [f"n{number:08d}" for number in range(1000)])
    gallery = queries(open_benchmark("imagenet", tmp_path))[0].gallery
    assert len(gallery) == 1000 and gallery[0] == "a bad photo of a tench." and isinstance(gallery[0], Ensemble)
    assert len(gallery[0].texts) == 80 and "a photo of a tench." in gallery[0].texts


def test_some_of_imagenets_classes_need_their_names(tmp_path: Path) -> None:
    classes(tmp_path, ["n01440764", "n01443537"])
    with pytest.raises(WrongUse, match=r"2 of its 2 folders .* write classnames\.txt beside them"):
        queries(open_benchmark("imagenet", tmp_path))
    put(tmp_path / "classnames.txt", "n01440764 tench\n")
    with pytest.raises(WrongUse, match=r"no name of the class 'n01443537'; write a line 'n01443537 NAME'"):
        queries(open_benchmark("imagenet", tmp_path))
    put(tmp_path / "classnames.txt", "n01440764 tench\nn01443537 gold fish\n")
    assert "a photo of a gold fish." in queries(open_benchmark("imagenet", tmp_path))[0].gallery[1].texts  # type: ignore[union-attr]


@pytest.mark.parametrize("form", ["{}", "{:04}"])
def test_folders_0_to_999_are_imagenets_classes_by_number(tmp_path: Path, form: str) -> None:
    classes(tmp_path, [form.format(number) for number in range(1000)])
    by_folder = {one.category: one for one in queries(open_benchmark("imagenet", tmp_path))}
    for number in (0, 1, 2, 10, 100, 999):
        one = by_folder[form.format(number)]
        (target,) = one.targets
        assert one.gallery[target] == f"a bad photo of a {IMAGENET_CLASSNAMES[number]}."


@pytest.mark.parametrize("names", [list(map(str, range(12))), ["3", "zebra"], ["n01440764", "7"]])
def test_some_numbered_folders_need_their_names(tmp_path: Path, names: list[str]) -> None:
    classes(tmp_path, names)
    with pytest.raises(WrongUse, match=r"of its \d+ folders are called by numbers, .* write classnames\.txt"):
        queries(open_benchmark("imagenet", tmp_path))
    put(tmp_path / "classnames.txt", "".join(f"{name} thing{name}\n" for name in names))
    assert queries(open_benchmark("imagenet", tmp_path))[0].gallery[0] == f"a bad photo of a thing{min(names)}."
