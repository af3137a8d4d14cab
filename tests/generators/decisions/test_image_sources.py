"""Decisions about generated images: what is asked, what people say to it, and what becomes of that."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import twinset
from tests.generators.decisions.tasks import answer, say
from tests.generators.finished_stage import write_index
from twinset.contracts.canonical import identity_of, sample_key
from twinset.contracts.errors import DecisionsMissing, WrongUse
from twinset.contracts.recipe import parse_recipe
from twinset.generators.decisions.answers import FILE
from twinset.generators.decisions.generated_images import ImageChoice
from twinset.generators.decisions.question import TaskCandidate, planned_tasks
from twinset.generators.generated_pairs.source import GeneratedPairs
from twinset.generators.markdown import card_block
from twinset.generators.negative_captions.kinds import COLUMNS
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store

ASKED = {"negatives": "negatives", "images": "images"}
STAGES = {**ASKED, "verified": "verified"}


@dataclass(frozen=True, slots=True)
class Caption:
    """A negative caption. scores: of each of its images."""

    scores: Sequence[float] = (0.5, 1.0, 1.0)
    type: str = "replace"
    photo: str = "photo.png"


FITS, FAILS, ADDED = Caption(), Caption((0.5, 0.5, 0.0)), Caption((1.0, 0.5, 0.5), "add")


def write_stages(folder: Path, captions: Sequence[Caption], digit: str = "0") -> None:
    """Write the stages ``negatives``, ``images`` and ``verified`` below a folder, without pictures.

    digit: with which the sha256 of each image begins; another one where they were made again.
    """
    negatives, images, verified = list[Any](), list[Any](), list[Any]()
    for n, caption in enumerate(captions):
        texts = {"caption_id": f"{n}", "caption": f"caption {n}", "negative_caption": f"negative {n}"}
        kind = {"type": caption.type, "subtype": "obj", "image_id": f"{n}", "image": caption.photo}
        negatives.append({"key": sample_key("negatives", n), "identity": identity_of(n), **texts, **kind})
        for number, score in enumerate(caption.scores):
            identity, caption_id = (n, "negative_caption", number), f"{n}-{number}"
            key = sample_key("images", *identity)
            about = {"key": key, "identity": identity_of(*identity), "group": sample_key("images", n)}
            about |= {"caption_id": caption_id, "image_sha256": f"{digit}{n:031x}{number:032x}"}
            images.append({**about, "tar": "test/00000.tar", "caption": texts["negative_caption"]})
            scores = {"caption_score": score, "original_score": 0.0}
            verified.append({"key": f"v{caption_id}", "image_key": key, "caption_id": caption_id, **scores})
    ids = [pa.field("key", pa.string()), pa.field("identity", pa.string())]
    write_index(pa.Table.from_pylist(negatives, pa.schema([*ids, *COLUMNS])), folder, "negatives", len(negatives))
    for name, rows in (("images", images), ("verified", verified)):
        write_index(pa.Table.from_pylist(rows), folder, name, len(rows))


def asked(out: Path, name: str) -> list[TaskCandidate]:
    return planned_tasks(Store(str(out)), f"_stages/{name}")


def decide_all(folder: Path, out: Path, stages: dict[str, dict[str, Any]], answers: dict[str, str]) -> None:
    """Builds of stages of decisions wait for each until each of its tasks has its value, in plan order.

    folder: that of `write_stages`. answers: of each stage.
    """
    lying = {name: str(folder / name) for name in ASKED}
    planned = {name: {"source": {**lying, **source}, "shard_size": 4} for name, source in stages.items()}
    recipe = parse_recipe({"name": "people", "stages": planned})
    for name, given in answers.items():
        values = given.split()
        with pytest.raises(DecisionsMissing, match=f"{name}: {len(values)} of {len(values)} decisions are missing"):
            twinset.build(recipe, str(out))
        tasks = zip(asked(out, name), values, strict=True)
        say(out / FILE, [answer(task, "ann", value, stage=name) for task, value in tasks])
    twinset.build(recipe, str(out))


def test_ambiguity_is_asked_of_the_image_that_was_chosen(tmp_path: Path) -> None:
    write_stages(tmp_path, [FITS, ADDED, FAILS, Caption(()), replace(FITS, photo="")])
    out, fits = tmp_path / "out", {"kind": "image-ambiguity", "photos": str(tmp_path), "choices": "best"}
    answers = {"best": "1 0 none 1", "fits": "photo both photo"}
    decide_all(tmp_path, out, {"best": {"kind": "image-choice"}, "fits": fits}, answers)
    stages = {name: FinishedStage(Store(str(out)), f"_stages/{name}") for name in answers}
    rejected = {name: twinset.status(str(out))["stages"][name]["rejected"] for name in answers}
    assert rejected == {"best": {"none-fits": 1}, "fits": {"ambiguous": 1}}
    excluded = {name: stage.stage.excluded for name, stage in stages.items()}
    assert excluded == {"best": {"no-image": 1}, "fits": {"not-chosen": 2}}
    first, best = asked(out, "fits")[0], asked(out, "best")
    assert [task.kind_name for task in best[:3]] == ["replace_obj", "add_obj", "replace_obj"]
    assert first.images == ("photo.png", best[0].images[1]) and first.image_tars == ("", "test/00000.tar")
    row = stages["fits"].read(["image_key", "image_sha256", "annotators"]).to_pylist()[0]
    assert row == {"image_key": first.images[1], "image_sha256": first.image_sha256s[1], "annotators": '["ann"]'}


def test_pairs_are_planned_from_what_people_chose(tmp_path: Path) -> None:
    write_stages(tmp_path, [FITS, FAILS, ADDED])
    out = tmp_path / "out"
    decide_all(tmp_path, out, {"best": {"kind": "image-choice"}}, {"best": "1 none 0"})
    folders = {**dict.fromkeys(STAGES, str(tmp_path)), "best": str(out / "_stages")}
    at = Context("bivlc", earlier=lambda stage: FinishedStage(Store(folders[stage]), stage))
    settings = {"kind": "generated-pairs", **STAGES, "photos": "/photos", "licence": "CC0-1.0", "decisions": "best"}
    source = GeneratedPairs.model_validate({**settings, "choice": "people"})
    stage = source.open(at)
    planned = [(pair.captions0[0], pair.key1, pair.score) for pair in stage.plan()]
    keys = {n: sample_key("images", n, "negative_caption", image) for n, image in ((0, 1), (2, 0))}
    assert planned == [(f"caption {n}", key, 1.0) for n, key in keys.items()]
    assert stage.excluded == {"not-chosen": 1}
    assert "People chose the image of each negative caption" in card_block(source, "how_made")
    by_score = GeneratedPairs.model_validate(settings)
    assert source.reads == (*by_score.reads, "best")
    assert [(pair.key1, pair.score) for pair in by_score.open(at).plan()] == [
        (sample_key("images", n, "negative_caption", image), score)
        for n, image, score in ((0, 1, 1), (1, 0, 0.5), (2, 0, 1))
    ]
    write_stages(tmp_path, [FITS, FAILS, ADDED], digit="f")
    with pytest.raises(WrongUse, match=r"decides about the image 'images-[a-z0-9]+', which is not among these images"):
        list(source.open(at).plan())


def test_answers_at_a_url_are_refused() -> None:
    with pytest.raises(ValueError, match="is a URL, and SQLite needs a file"):
        ImageChoice.model_validate({"kind": "image-choice", **ASKED, "answers": "s3://bucket/answers.sqlite"})
