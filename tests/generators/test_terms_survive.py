"""Licence, credit and address of what a stage reads are those of what it gives; nothing derives what allows none."""

import json
from collections.abc import Iterable
from itertools import cycle
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import twinset
from tests.generators.finished_stage import finished, write_index
from tests.generators.words_alone.test_probe import captions
from twinset.contracts.candidate import to_row
from twinset.contracts.canonical import identity_of
from twinset.contracts.doors import marks
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.text_pair import TEXT_SCORES
from twinset.contracts.licences.terms import TERMS, Terms
from twinset.contracts.parts import LeftOut
from twinset.contracts.recipe import load_recipe
from twinset.contracts.source import SOURCES, Place
from twinset.generators import KINDS
from twinset.generators.copied_pairs import COPIED, HASHED, planned
from twinset.generators.galleries.annotations import read_scenes
from twinset.generators.negative_captions.kinds import COLUMNS
from twinset.generators.negative_captions.replay import ReplayedNegatives
from twinset.shards.contracts import Context, Source, TableStage
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.storage.store import Store

ADA = Terms("CC-BY-SA-2.0", "Ada", "https://a.example/1")
CLOSED = Terms("CC-BY-ND-2.0", "Bob", "https://b.example/2")
#: Settings of kinds that plan from a table of negative captions, which their key names.
OF_NEGATIVES: dict[str, dict[str, Any]] = {
    "caption-scores": {"negatives": "n", "scorers": [{"kind": "cola", "model": "textattack/roberta-base-CoLA"}]},
    "negative-prompts": {"negatives": "n"},
    "selected-negatives": {
        "scores": "n", "rules": "paper", "quality": ["vera"], "quantile": 0.1, "refine": [], "similarity": None
    },
    "text-pairs": {"negatives": "n", "images": "/i"},
}  # fmt: skip
DERIVING: dict[str, dict[str, Any]] = {
    "negative-images": {"negatives": "n", "engine": {"kind": "diffusers", "model": "/m", "licence": "MIT"}},
    **{  # read no stage
        "stable-diffusion": {"model": "/m", "licence": "MIT"},
        "genecis-attributes": {"task": "focus", "annotations": "/a", "taxonomy": "/t", "media": "/i"},
    },
}
#: Held below, on the demo, and by what copies pairs.
OTHERS = {"generated-pairs", "genecis-triplets", "screened-pairs"}
#: Tables of facts about samples: whoever reads them takes samples, and their terms, from the stage of these.
FACTS = {
    "human-baseline", "image-ambiguity", "image-choice", "image-features", "image-neighbours",
    "image-verification", "pair-screening",
}  # fmt: skip


def settings(kind: str, **given: Any) -> Source:
    known = {**OF_NEGATIVES, **DERIVING}.get(kind, {})
    source = SOURCES.find(kind).model_validate({"kind": kind, **known, **given})
    assert isinstance(source, Source)
    return source


def negatives(folder: Path, terms: Iterable[Terms]) -> Context:
    """A context in which every stage is 300 negative captions; the terms of one after the other."""
    rows = []
    for at, ((caption, negative), stated) in enumerate(zip(captions(300, 0), cycle(terms), strict=False)):
        row = dict(zip(COLUMNS.names, (str(at), str(at), "", caption, f"{negative}.", "replace", "obj"), strict=True))
        ids = {"key": f"n-{at}", "identity": identity_of(at), "group": str(at), "prompt": negative}
        scores = {name: 0.5 + at / 1000 for name in TEXT_SCORES}
        rows.append({**ids, **stated._asdict(), **row, **scores})
    write_index(pa.Table.from_pylist(rows), folder, "n", len(rows))
    return Context("s", earlier=finished(folder, "n"))


def test_every_kind_that_reads_a_stage_or_changes_pictures_is_among_these() -> None:
    sources = {kind: SOURCES.find(kind) for kind in KINDS}
    reading = {kind for kind in sources if any(mark.what == "stage" for mark in marks(sources[kind], Place).values())}
    assert reading == {*OF_NEGATIVES, *DERIVING, *OTHERS, *FACTS} - {"genecis-attributes", "stable-diffusion"}
    assert {kind for kind in sources if "allow_no_derivatives" in sources[kind].model_fields} == {*DERIVING}


@pytest.mark.parametrize("kind", OF_NEGATIVES)
def test_what_is_planned_from_a_stage_has_its_terms(kind: str, tmp_path: Path) -> None:
    source = settings(kind).open(negatives(tmp_path, [ADA, CLOSED]))
    if isinstance(source, TableStage):
        rows = source.transform(source.earlier().frame(tmp_path))
        terms = {Terms(*row) for row in rows.lazy().select(TERMS).collect().iter_rows()}
    else:
        terms = {Terms.of(to_row(candidate)) for candidate in source.plan()}
    assert terms == {ADA, CLOSED}


def test_nothing_is_drawn_from_what_allows_no_derivatives(tmp_path: Path) -> None:
    context = negatives(tmp_path, [ADA, CLOSED])
    with pytest.raises(WrongUse, match=r"without derivatives \(https://b\.example/2\).*allow_no_derivatives: true"):
        list(settings("negative-images").open(context).plan())
    allowed = settings("negative-images", allow_no_derivatives=True).open(context).plan()
    assert {Terms.of(to_row(candidate)) for candidate in allowed} == {
        Terms("CC-BY-SA-2.0 AND MIT", "Ada (CC-BY-SA-2.0)", ADA.source_url),
        Terms("CC-BY-ND-2.0 AND MIT", "Bob (CC-BY-ND-2.0)", CLOSED.source_url),
    }
    crops = settings("genecis-attributes", licence="CC-BY-ND-2.0")
    with pytest.raises(WrongUse, match="without derivatives"):
        crops.settled(("s", 1), None, (), True)


COCO = {
    "licenses": [
        {"id": 3, "name": "", "url": "http://creativecommons.org/licenses/by-nc-nd/2.0/"},
        {"id": 5, "name": "Attribution-ShareAlike License", "url": "http://creativecommons.org/licenses/by-sa/2.0/"},
    ],
    "images": [
        {"id": 1, "file_name": "1.jpg", "license": 3, "flickr_url": "http://f.example/1", "width": 9, "height": 9},
        {"id": 2, "file_name": "2.jpg", "license": 5, "flickr_url": "javascript:x", "width": 9, "height": 9},
    ],
}
STATED = {1: Terms("CC-BY-NC-ND-2.0", "", "http://f.example/1"), 2: Terms("CC-BY-SA-2.0")}


def test_what_cocos_files_say_of_photos_is_read(tmp_path: Path) -> None:
    scenes = tmp_path / "p.json"
    segments = [{"image_id": image, "segments_info": [{"id": 1, "category_id": 1, "area": 9}]} for image in STATED]
    scenes.write_text(json.dumps({**COCO, "categories": [{"id": 1, "name": "car"}], "annotations": segments}))
    assert read_scenes(scenes, LeftOut()).terms == tuple(STATED.values())
    scenes.write_text(json.dumps({**COCO, "licenses": [3], "categories": [], "annotations": []}))
    with pytest.raises(WrongUse, match=r"p\.json: licenses is not a list of objects"):
        read_scenes(scenes, LeftOut())


def test_replayed_negatives_have_the_terms_of_their_records(tmp_path: Path) -> None:
    row = {"caption": "A dog.", "negative_caption": "A cat."}
    records = [{**row, **CLOSED._asdict()}, {**row, "license": "cc by 4.0"}, row, {**row, "licence": "UN"}]
    (tmp_path / "n.json").write_text(json.dumps(records))
    source = ReplayedNegatives(kind="replayed-negatives", captions=(tmp_path / "n.json",), licence="MIT", credit="C")
    generator = source.open(Context("n"))
    expected = [CLOSED, Terms("CC-BY-4.0", "C"), Terms("MIT", "C")]
    assert [Terms.of(to_row(candidate)) for candidate in generator.plan()] == expected
    assert dict(generator.excluded) == {"unknown-licence": 1}


def test_pairs_that_are_copied_have_the_terms_of_the_pair() -> None:
    row = {**dict.fromkeys(COPIED, "x"), **CLOSED._asdict(), "sources": [], **dict.fromkeys(HASHED, "0")}
    assert Terms.of(planned(row)) == CLOSED


@pytest.mark.slow
def test_terms_are_at_the_end_of_the_demos_chains(tmp_path: Path) -> None:
    first = ("small-negatives", "scene-graphs", "negatives")
    stated = [f"stages.{name}.source.{term}={value}" for name in first for term, value in ADA._asdict().items()]
    recipe = load_recipe("demo", [*stated, "stages.negatives.count=700", "subsets.triplets.count=4"])
    chains = recipe.only(["bivlc", "triplets", "trohn-text"])
    twinset.build(chains, str(tmp_path), workers=2)
    for name, stage in chains.all.items():
        rows = FinishedStage(Store(str(tmp_path)), recipe.home(name)).read(list(TERMS)).to_pylist()
        assert rows, name
        if stage.source.kind not in FACTS:
            assert {("Ada" in row["credit"], row["source_url"]) for row in rows} == {(True, ADA.source_url)}, name
        if name in ("small-negatives", "small-prompts", "small-images", "bivlc"):  # captions.json states its own
            assert all(ADA.licence in row["licence"] for row in rows), name
