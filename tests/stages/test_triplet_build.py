"""GeneCIS's triplets from recipe to receipt: captions, scene graphs, plan, images; no flow runs here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cli.main import main
from generators.triplets.generator import TripletCandidate
from generators.triplets.report import MiningReport
from manifests.errors import BuildFailed, WrongUse
from manifests.receipt import parsed
from manifests.recipe import load_recipe
from manifests.stage import Stage
from shards.kinds.reading import StoredTriplet
from shards.media.source_media import media_of
from shards.read import read_samples
from shards.rows import KEPT, Row, read_rows
from shards.storage.store import Store
from stages.index import write_index
from stages.inputs import check_inputs
from stages.makers import workshop, workshop_for
from stages.prepare import asked_recipe, check_missing, count_plan, make_earlier, make_one, prepare, state_of
from stages.verify import verify_subset
from tests.stages.captioned_images import SCENES, into_tars, picture, write_inputs

pytest.importorskip("inflect", reason="inflect makes the plurals of the published rules: pip install 'twinset[text]'")

SUBSET = "triplets"
Prepared = Callable[..., tuple[Store, Stage]]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The inputs with their scene graphs in ``graphs``, as an earlier build has made them."""
    folder = tmp_path_factory.mktemp("inputs")
    recipe = load_recipe(str(write_inputs(folder)))
    generator = workshop(recipe, SUBSET).generator
    generator.make_earlier(str(folder / "graphs"), 1)  # type: ignore[attr-defined]
    return folder


@pytest.fixture
def recipe(inputs: Path, tmp_path: Path) -> Path:
    shutil.copytree(inputs, tmp_path / "inputs")
    return tmp_path / "inputs" / "recipe.yaml"


def build(recipe: Path, out: Path, *settings: str, workers: int = 1) -> Store:
    """Build from the scene graphs that are made already, with so many shards at a time."""
    graphs = f"subsets.triplets.source.captions={recipe.parent / 'graphs'}"
    loaded, store = load_recipe(str(recipe), [graphs, *settings]), Store(str(out))
    check_inputs(loaded)
    prepare(store, loaded, SUBSET, 1)
    todo = state_of(store, loaded, SUBSET).todo
    with ThreadPoolExecutor(workers) as pool:
        list(pool.map(lambda number: make_one(store.root, SUBSET, number), reversed(todo)))
    return store


def rows_of(store: Store) -> dict[str, Row]:
    found = {}
    for name in store.names("triplets/_meta/rows"):
        with store.open(f"triplets/_meta/rows/{name}") as stream:
            found |= {row.key: row for row in read_rows(stream)}
    return found


def problems(store: Store, media: bool = False) -> list[str]:
    asked = asked_recipe(store, SUBSET)
    folder = media_of(asked.subsets[SUBSET].source) if media else None
    return list(verify_subset(store, state_of(store, asked, SUBSET), TripletCandidate, folder))


def data(out: Path) -> dict[str, bytes]:
    files = (path for path in sorted(out.rglob("*")) if path.is_file())
    told = {path.relative_to(out).as_posix(): path.read_bytes() for path in files if "log" not in path.parts}
    return {name: content for name, content in told.items() if not name.endswith("recipe.json")}


def test_a_triplet_holds_both_images_and_what_leads_from_one_to_the_other(recipe: Path, tmp_path: Path) -> None:
    store = build(recipe, tmp_path / "out")
    assert problems(store, media=True) == []
    samples = [one for one in read_samples(store, SUBSET) if isinstance(one, StoredTriplet)]
    assert len(samples) == 40
    for sample in samples:
        reference, target = (
            SCENES[int(sample.json.image_ids[part].removeprefix("i"))] for part in ("reference", "target")
        )
        assert reference[0] == target[0] and reference[1] != target[1]
        assert sample.condition == " ".join(target[1])
        assert sample.json.provenance["target"] == {
            "subject": target[0],
            "predicate": target[1][0],
            "object": target[1][1],
            "caption_id": sample.json.image_ids["target"].replace("i", "c"),
        }
        assert sample.json.scores["concreteness"] > 4.8


def test_the_same_bytes_on_any_number_of_workers(recipe: Path, tmp_path: Path) -> None:
    whole = data(Path(build(recipe, tmp_path / "1").root))
    assert sum(name.endswith(".tar") for name in whole) == 5
    for workers in (2, 4):
        build(recipe, tmp_path / str(workers), workers=workers)
        assert data(tmp_path / str(workers)) == whole


def test_the_same_triplets_in_shards_of_any_size_and_more_keep_the_first(recipe: Path, tmp_path: Path) -> None:
    few = rows_of(build(recipe, tmp_path / "few"))
    for settings in (
        ("subsets.triplets.shard_size=3",),
        ("subsets.triplets.count=60", "subsets.triplets.shard_size=16"),
    ):
        others = rows_of(build(recipe, tmp_path / settings[-1], *settings))
        assert {key: (row.content, row.words, row.images) for key, row in few.items()} == {
            key: (row.content, row.words, row.images) for key, row in list(others.items()) if key in few
        }
    store = build(recipe, tmp_path / "few", "subsets.triplets.count=64")
    assert len(rows_of(store)) == 64 and problems(store) == []


def test_captions_are_parsed_below_the_build_where_they_are_not_yet(recipe: Path, tmp_path: Path) -> None:
    """... once, and the plan is that of the same captions parsed elsewhere."""
    loaded, store = load_recipe(str(recipe)), Store(str(tmp_path / "out"))
    told: list[tuple[int, int]] = []
    for _ in range(2):
        make_earlier(store, loaded, SUBSET, 1, lambda done, total: told.append((done, total)))
    assert told == [(0, 1), (1, 1)]
    stage = prepare(store, loaded, SUBSET, 1)
    receipt = tmp_path / "out/triplets/_meta/graphs/_meta/receipts/00000.json"
    written = receipt.stat().st_mtime_ns
    assert prepare(store, loaded, SUBSET, 1) == stage
    assert receipt.stat().st_mtime_ns == written
    elsewhere = build(recipe, tmp_path / "elsewhere")
    assert elsewhere.read("triplets/_meta/stage.json") == store.read("triplets/_meta/stage.json")
    assert elsewhere.size("triplets/_meta/graphs/_meta/index.json") is None


def test_what_was_mined_is_told_beside_the_plan(recipe: Path, tmp_path: Path) -> None:
    store = build(recipe, tmp_path / "out")
    report = parsed(MiningReport, store.read("triplets/_meta/mining.json"))
    assert report is not None
    assert report.funnels["strict"]["captions"] == len(SCENES)
    assert set(report.subjects) == {"dog", "cat", "horse"}


@pytest.mark.parametrize("tars", [False, True], ids=["files", "tars"])
def test_a_missing_image_rejects_its_triplets_until_it_appears(recipe: Path, tmp_path: Path, tars: bool) -> None:
    whole, images, kept = build(recipe, tmp_path / "whole"), recipe.parent / "images", tmp_path / "kept"
    if tars:
        into_tars(images)
        shutil.copytree(images, kept)
        (images / "00001.tar").write_bytes(b"")
        for file in range(1, len(SCENES), 2):
            (kept / f"{file:04d}.png").write_bytes(picture(file))
    else:
        shutil.copytree(images, kept)
        for number in (0, 3):
            (images / f"{number:04d}.png").unlink()
    store = build(recipe, tmp_path / "out")
    asked = asked_recipe(store, SUBSET)
    state = state_of(store, asked, SUBSET)
    rejected = state.counts()["rejected"]
    assert set(rejected) == {"missing-media"} and rejected["missing-media"] < 40
    with pytest.raises(BuildFailed, match="is missing or broken, such as 0"):
        check_missing(asked, [state])
    assert state.todo == []
    shutil.rmtree(images)
    shutil.copytree(kept, images)
    assert len(state_of(store, asked, SUBSET).stale) == sum(bool(one.missing) for one in state.done.values()) > 0
    again = rows_of(build(recipe, tmp_path / "out"))
    assert all(row.verdict == KEPT for row in again.values())
    assert problems(store, media=True) == []
    if not tars:
        assert data(tmp_path / "out") == data(tmp_path / "whole")
    assert {row.content for row in again.values()} == {row.content for row in rows_of(whole).values()}


def test_two_copies_of_one_image_are_no_triplet(recipe: Path, tmp_path: Path) -> None:
    for number in range(len(SCENES)):
        (recipe.parent / "images" / f"{number:04d}.png").write_bytes(picture(number % 2))
    rows = rows_of(build(recipe, tmp_path / "out")).values()
    assert {row.reason for row in rows if row.verdict != KEPT} == {"same-image"}
    assert all(row.images["reference"] != row.images["target"] for row in rows if row.images)


def test_an_index_alone_needs_no_image_and_is_verified(recipe: Path, tmp_path: Path) -> None:
    shutil.rmtree(recipe.parent / "images")
    store = build(recipe, tmp_path / "out", "subsets.triplets.source.images=null")
    rows = rows_of(store).values()
    assert all(row.verdict == KEPT and not row.images and row.words["reference_id"] for row in rows)
    assert store.names("triplets/train") == []
    asked = asked_recipe(store, SUBSET)
    write_index(store, SUBSET, next(iter(rows)).kind)
    assert state_of(store, asked, SUBSET).counts() == {"planned": 40, "kept": 40, "rejected": {}, "shards": 5}
    assert problems(store, media=True) == []


def test_distractors_are_stored_where_they_are_asked_for(recipe: Path, tmp_path: Path) -> None:
    store = build(recipe, tmp_path / "out", "subsets.triplets.source.distractors=true")
    for sample in read_samples(store, SUBSET):
        assert isinstance(sample, StoredTriplet)
        of, target = (SCENES[int(sample.json.image_ids[part].removeprefix("i"))] for part in ("distractor", "target"))
        assert of[1][1] == target[1][1] and of[0] != target[0]
    published = build(
        recipe,
        tmp_path / "published",
        "subsets.triplets.source.distractors=true",
        "subsets.triplets.source.rules=published",
    )
    assert {row.reason for row in rows_of(published).values()} <= {"", "same-image"}
    assert problems(published, media=True) == []


def test_workers_of_shards_need_images_alone(recipe: Path, tmp_path: Path) -> None:
    graphs = f"subsets.triplets.source.captions={recipe.parent / 'graphs'}"
    loaded, store = load_recipe(str(recipe), [graphs]), Store(str(tmp_path / "out"))
    prepare(store, loaded, SUBSET)
    shutil.rmtree(recipe.parent / "graphs")
    (recipe.parent / "ratings.txt").unlink()
    workshop_for.cache_clear()
    assert make_one(store.root, SUBSET, 0)["kept"] == 8


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("concreteness=absent.txt", "concreteness: there is no file .*absent.txt; name the ratings"),
        ("captions=absent.tsv", "captions: .*absent.tsv: no such file"),
        ("images=absent", "images: there is no folder .*absent; .*images=null"),
        ("pipeline=en_no_such", "captions: .*en_no_such: neither an installed package nor a folder"),
    ],
)
def test_what_is_absent_is_named_with_its_setting(recipe: Path, setting: str, said: str) -> None:
    with pytest.raises(WrongUse, match=said):
        check_inputs(load_recipe(str(recipe), [f"subsets.triplets.source.{setting}"]))


def test_a_file_of_another_shape_is_no_ratings(recipe: Path) -> None:
    (recipe.parent / "ratings.txt").write_text("word,score\ndog,5\n")
    with pytest.raises(WrongUse, match=r"triplets.source.concreteness: .*ratings.txt, line 1: no columns"):
        check_inputs(load_recipe(str(recipe)))


def test_parsed_captions_stand_alone(recipe: Path) -> None:
    both = f"subsets.triplets.source.captions=[{recipe.parent / 'graphs'}, {recipe.parent / 'captions.jsonl'}]"
    with pytest.raises(WrongUse, match="graphs is parsed already; name it alone"):
        check_inputs(load_recipe(str(recipe), [both]))


def test_captions_without_triplets_say_at_which_step(recipe: Path, tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="0 eligible subjects"):
        build(recipe, tmp_path / "out", "subsets.triplets.source.min_images=100")
    assert not (tmp_path / "out/triplets/_meta/stage.json").exists()


def test_a_plan_without_out_says_what_it_needs(recipe: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", str(recipe)]) == 2
    assert "give --out OUT to have them made there, or run twinset parse" in capsys.readouterr().err
    graphs = f"subsets.triplets.source.captions={recipe.parent / 'graphs'}"
    assert count_plan(load_recipe(str(recipe), [graphs]), SUBSET)["planned"] == 40


def test_images_that_captions_name_by_address_are_refused(recipe: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (recipe.parent / "captions.jsonl").read_text().splitlines()]
    told = "".join(f"{line['caption']}\thttp://example.org/{line['image']}\n" for line in lines)
    (recipe.parent / "captions.tsv").write_text(told)
    captions, store = f"subsets.triplets.source.captions={recipe.parent / 'captions.tsv'}", Store(str(tmp_path / "out"))
    with pytest.raises(WrongUse, match="download them with img2dataset"):
        prepare(store, load_recipe(str(recipe), [captions]), SUBSET, 1)
    index = load_recipe(str(recipe), [captions, "subsets.triplets.source.images=null"])
    assert prepare(store, index, SUBSET, 1).planned == 40
