"""Decisions about generated images: what is asked, what people say to it, and what becomes of that."""

import json
from collections.abc import Mapping, Sequence
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
from twinset.contracts.recipe import Recipe, parse_recipe
from twinset.generators.decisions.answers import FILE
from twinset.generators.decisions.generated_images import ImageChoice
from twinset.generators.decisions.question import TaskCandidate, planned_tasks
from twinset.generators.generated_pairs.source import GeneratedPairs
from twinset.generators.markdown import card_block
from twinset.generators.negative_captions.kinds import COLUMNS
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store
from twinset.stages.build import build_here

ASKED = {"negatives": "negatives", "images": "images"}
STAGES = {**ASKED, "verified": "verified"}


@dataclass(frozen=True, slots=True)
class Caption:
    """A negative caption. scores: of each of its images."""

    scores: Sequence[float] = (0.5, 1.0, 1.0)
    type: str = "replace"
    photo: str = "photo.png"


FITS, FAILS, ADDED = Caption(), Caption((0.5, 0.5, 0.0)), Caption((1.0, 0.5, 0.5), "add")


def write_stages(folder: Path, captions: Sequence[Caption], rebuilt: Mapping[tuple[int, int], str] = {}) -> None:
    """Write the stages ``negatives``, ``images`` and ``verified`` below a folder, without pictures.

    rebuilt: sha256 of images that were made again, by numbers of caption and image.
    """
    negatives, images, verified = list[Any](), list[Any](), list[Any]()
    for n, caption in enumerate(captions):
        texts = {"caption_id": f"{n}", "caption": f"caption {n}", "negative_caption": f"negative {n}"}
        kind = {"type": caption.type, "subtype": "obj", "image_id": f"{n}", "image": caption.photo}
        negatives.append({"key": sample_key("negatives", n), "identity": identity_of(n), **texts, **kind})
        for number, score in enumerate(caption.scores):
            made, told = (n, "negative_caption", number), {"caption_id": f"{n}-{number}"}
            key, sha256 = sample_key("images", *made), rebuilt.get((n, number), f"{n:032x}{number:032x}")
            about = {"key": key, "identity": identity_of(*made), "group": sample_key("images", n)}
            about |= {"image_sha256": sha256, **told}
            images.append({**about, "tar": "test/00000.tar", "caption": texts["negative_caption"]})
            scores = {"caption_score": score, "original_score": 0.0}
            verified.append({"key": f"v{n}-{number}", "image_key": key, **told, **scores})
    ids = [pa.field("key", pa.string()), pa.field("identity", pa.string())]
    write_index(pa.Table.from_pylist(negatives, pa.schema([*ids, *COLUMNS])), folder, "negatives", len(negatives))
    for name, rows in (("images", images), ("verified", verified)):
        write_index(pa.Table.from_pylist(rows), folder, name, len(rows))


def context(folder: Path) -> Context:
    """The context of a stage that is planned from them."""
    return Context("chosen", earlier=lambda stage: FinishedStage(Store(str(folder)), stage), out=Store(str(folder)))


def choice(**settings: Any) -> ImageChoice:
    return ImageChoice.model_validate({"kind": "image-choice", **ASKED, **settings})


def recipe_of(folder: Path, **stages: dict[str, Any]) -> Recipe:
    """A recipe of stages of decisions, planned from what `write_stages` wrote."""
    lying = {name: str(folder / name) for name in ASKED}
    planned = {name: {"source": {**lying, **source}, "shard_size": 4} for name, source in stages.items()}
    return parse_recipe({"name": "people", "stages": planned})


def asked(out: Path, name: str) -> list[TaskCandidate]:
    return planned_tasks(Store(str(out)), f"_stages/{name}")


def decide_all(recipe: Recipe, out: Path, **stages: str) -> None:
    """Builds wait for each stage until each of its tasks has its value, in plan order."""
    for name, given in stages.items():
        values = given.split()
        with pytest.raises(DecisionsMissing, match=f"{name}: {len(values)} of {len(values)} decisions are missing"):
            build_here(recipe, str(out))
        say(
            out / FILE,
            [answer(one, "ann", value, stage=name) for one, value in zip(asked(out, name), values, strict=True)],
        )
    build_here(recipe, str(out))


def test_ambiguity_is_asked_of_the_image_that_was_chosen(tmp_path: Path) -> None:
    write_stages(tmp_path, [FITS, ADDED, FAILS, Caption(()), replace(FITS, photo="")])
    out, store = tmp_path / "out", Store(str(tmp_path / "out"))
    fits = {"kind": "image-ambiguity", "photos": str(tmp_path), "choices": "best"}
    decide_all(
        recipe_of(tmp_path, best={"kind": "image-choice"}, fits=fits), out, best="1 0 none 1", fits="photo both photo"
    )
    stages = {name: FinishedStage(store, f"_stages/{name}") for name in ("best", "fits")}
    rejected = {name: twinset.status(str(out))["stages"][name]["rejected"] for name in stages}
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
    decide_all(recipe_of(tmp_path, best={"kind": "image-choice"}), out, best="1 none 0")
    folders = {**dict.fromkeys(STAGES, str(tmp_path)), "best": str(out / "_stages")}
    at = Context("bivlc", earlier=lambda stage: FinishedStage(Store(folders[stage]), stage))
    settings = {"kind": "generated-pairs", **STAGES, "photos": "/photos", "licence": "CC0-1.0", "decisions": "best"}
    source = GeneratedPairs.model_validate({**settings, "choice": "people"})
    stage = source.open(at)
    planned = [(one.captions0[0], one.key1, one.score) for one in stage.plan()]
    keys = {n: sample_key("images", n, "negative_caption", image) for n, image in ((0, 1), (2, 0))}
    assert planned == [(f"caption {n}", key, 1.0) for n, key in keys.items()]
    assert stage.excluded == {"not-chosen": 1}
    assert "People chose the image of each negative caption" in card_block(source, "how_made")
    unused = GeneratedPairs.model_validate(settings)
    assert source.reads == (*unused.reads, "best")
    assert (source.chosen_by, unused.chosen_by) == ("people", "score")
    write_stages(tmp_path, [FITS, FAILS, ADDED], rebuilt={(2, 0): "f" * 64})
    with pytest.raises(WrongUse, match=r"decides about the image 'images-[a-z0-9]+', which is not among these images"):
        list(source.open(at).plan())


def test_a_tie_waits_for_one_more_annotator_and_the_card_says_how_well_they_agree(tmp_path: Path) -> None:
    write_stages(tmp_path, [FITS, FAILS, ADDED])
    source = choice(overlap=1.0)
    first, *others = source.open(context(tmp_path)).plan()
    for name, value in (("a", "1"), ("b", "none")):
        say(tmp_path / FILE, [answer(first, name, value, stage="chosen")])
        say(tmp_path / FILE, [answer(one, name, "none", stage="chosen") for one in others])
    stage = source.open(context(tmp_path))
    waiting = stage.waiting()
    assert waiting is not None and waiting[0] == 1 and stage.report_files() == {}
    say(tmp_path / FILE, [answer(first, "c", "2", stage="chosen")])
    stage = source.open(context(tmp_path))
    assert stage.waiting() is None
    card = card_block(source, "how_made", {"decisions.json": json.loads(stage.report_files()["decisions.json"])})
    assert "was asked in 3 tasks; 3 people gave 7 answers" in card
    assert "| replace_obj | 2 | 1 | 50.0% |" in card and "| all | 3 | 2 | 66.7% |" in card
    assert "Cohen's kappa (kept or dropped): mean 0.00 over 2 pairs of annotators: 0.00 (3 tasks)" in card


def test_what_cannot_be_asked_is_refused(tmp_path: Path) -> None:
    write_stages(tmp_path, [FITS])
    with pytest.raises(ValueError, match="is a URL, and SQLite needs a file"):
        choice(answers="s3://bucket/answers.sqlite")
    with pytest.raises(WrongUse, match="not in a local folder; name their file with"):
        choice().open(replace(context(tmp_path), out=None)).waiting()
