"""Second captions that say the same: written once a caption, checked, and taken along to text pairs and benchmarks."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from PIL import Image

from tests.generators.finished_stage import write_index
from tests.generators.negative_captions.test_written import tables
from tests.models.language_models.chat_server import Body, Reply, asked, completion, serving
from twinset.evaluation.benchmarks import open_benchmark
from twinset.evaluation.examples import Query
from twinset.generators.contract import check_source
from twinset.generators.negative_captions.kinds import COLUMNS
from twinset.generators.negative_captions.second_captions import SecondCaptions
from twinset.manifests.canonical import identity_of
from twinset.manifests.errors import BuildFailed, WrongUse
from twinset.manifests.recipe import parse_recipe
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.kinds.samples import Rejected, TableRows
from twinset.shards.read import read_samples
from twinset.shards.storage.store import Store
from twinset.stages.run_here import build_here

SAID = {
    "A black dog sleeps.": "A dark hound is asleep.",
    "Two red birds fly.": "A pair of crimson birds is in the air.",
}
NEGATIVES = [
    ("A black dog sleeps.", "A black cat sleeps.", 1),
    ("A black dog sleeps.", "A white dog sleeps.", 1),
    ("Two red birds fly.", "Two red birds sit.", 2),
]


def knowing(body: Body, number: int) -> Reply:
    return completion(json.dumps({"caption2": SAID[asked(body)]}))


def engine(url: str, folder: Path, **settings: Any) -> dict[str, Any]:
    where = {"base_url": url, "answers": str(folder / "answers")}
    return {"kind": "openai", "model": "m", "timeout": 300.0, "longest_wait": 0.01, **where, **settings}


def source(url: str, folder: Path) -> SecondCaptions:
    given = {"kind": "second-captions", "negatives": "scores", "engine": engine(url, folder)}
    return SecondCaptions.model_validate(given)


def stage(folder: Path) -> FinishedStage:
    """Negatives with one of twinset's scores."""
    rows = [
        {
            **{"key": f"scores-{number}", "identity": identity_of(number), "group": caption},
            **dict.fromkeys(COLUMNS.names, str(image)),
            **{"caption": caption, "negative_caption": negative, "vera_caption": 0.25},
        }
        for number, (caption, negative, image) in enumerate(NEGATIVES)
    ]
    return write_index(pa.Table.from_pylist(rows), folder, "scores", len(rows))


def test_the_contract_is_kept_and_a_caption_is_asked_for_once(tmp_path: Path) -> None:
    earlier = stage(tmp_path)
    with serving(knowing) as server:
        check_source(source(server.url, tmp_path), Context("second", earlier=lambda _: earlier))
        assert len(server.bodies) == 2, "three negatives of two captions"
        schema = server.bodies[0]["response_format"]["json_schema"]["schema"]
        assert schema["required"] == ["caption2"]
        generator = source(server.url, tmp_path).open(Context("second", earlier=lambda _: earlier))
        planned = list(generator.plan())
        made = list(generator.make(planned))
    rows = [one.rows[0] for one in made if isinstance(one, TableRows)]
    assert [(one["caption2"], one["vera_caption"], one["cola_caption"]) for one in rows] == [
        (SAID[caption], 0.25, None) for caption, *_ in NEGATIVES
    ]


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ("A black dog sleeps", "unchanged"),
        ("Sleeps a black dog.", "same-words"),
        ("A dark hound never sleeps.", "not-as-negated"),
        ("a black CAT sleeps", "as-negative"),
        (None, "nothing-to-change"),
        ("two\nlines", "off-format"),
    ],
)
def test_an_answer_that_says_something_else_is_rejected(tmp_path: Path, second: str | None, reason: str) -> None:
    earlier = stage(tmp_path)
    with serving(lambda body, number: completion(json.dumps({"caption2": second}))) as server:
        generator = source(server.url, tmp_path).open(Context("second", earlier=lambda _: earlier))
        first = next(iter(generator.make(list(generator.plan())[:1])))
    assert isinstance(first, Rejected) and first.reason == reason
    assert reason in source("http://127.0.0.1:1/v1", tmp_path).meanings


def test_rules_say_nothing_in_other_words() -> None:
    with pytest.raises(ValueError, match="there is no language model 'rules' here"):
        SecondCaptions.model_validate({"kind": "second-captions", "negatives": "n", "engine": {"kind": "rules"}})


def recipe(folder: Path, url: str, **pairs: Any) -> Any:
    (folder / "data").mkdir(exist_ok=True)
    records = {
        str(number): {"filename": f"{image}.png", "caption": caption, "negative_caption": negative}
        for number, (caption, negative, image) in enumerate(NEGATIVES)
    }
    (folder / "data/replace_obj.json").write_text(json.dumps(records))
    for image in (1, 2):
        Image.new("RGB", (40, 30), (90 * image, 20, 60)).save(folder / f"data/{image}.png")
    released = {"kind": "replayed-negatives", "captions": [str(folder / "data")]}
    second = {"kind": "second-captions", "negatives": "released", "engine": engine(url, folder, retries=0)}
    text = {"kind": "text-pairs", "negatives": "second", "images": str(folder / "data"), "licence": "CC0-1.0"}
    stages = {"released": {"source": released}, "second": {"source": second, "shard_size": 1}}
    return parse_recipe(
        {"name": "n", "stages": stages, "subsets": {"text": {"source": {**text, "second": True, **pairs}}}}
    )


@pytest.mark.slow
def test_text_pairs_hold_the_second_caption_and_ask_as_sugarcrepe_plus_does(tmp_path: Path) -> None:
    def dies(body: Body, number: int) -> Reply:
        return knowing(body, number) if number < 1 else Reply(b"{}", 500)

    with serving(dies) as server:
        with pytest.raises(BuildFailed, match="tried 1 times"):
            build_here(recipe(tmp_path, server.url), str(tmp_path / "out"), 1)
        server.reply = knowing
        build_here(recipe(tmp_path, server.url), str(tmp_path / "out"), 1)
        assert sum(server.answered.values()) == 2, "what was answered before is not asked for again"
        again = recipe(tmp_path, server.url)
        build_here(again, str(tmp_path / "again"), 1)
        assert sum(server.answered.values()) == 2
    assert tables(tmp_path / "out") == tables(tmp_path / "again")
    store = Store(str(tmp_path / "out"))
    samples = list(read_samples(store, "text"))
    assert {one.texts["caption"]: one.attached["caption2.txt"].decode() for one in samples} == SAID
    assert (tmp_path / "out/text/README.md").is_file()
    benchmark = open_benchmark("twinset", tmp_path / "out")
    assert [*benchmark.metrics] == ["all-targets"]
    queries = [one for one in benchmark.examples() if isinstance(one, Query)]
    galleries = [(caption, SAID[caption], negative) for caption, negative, _ in NEGATIVES]
    assert [one.gallery for one in queries] == galleries
    assert {one.targets for one in queries} == {frozenset({0, 1})} and {one.category for one in queries} == {
        "replace_obj"
    }


def test_text_pairs_without_second_captions_stay_matchings(tmp_path: Path) -> None:
    with serving(knowing) as server:
        build_here(recipe(tmp_path, server.url, second=False), str(tmp_path / "out"), 1)
    assert [one.attached for one in read_samples(Store(str(tmp_path / "out")), "text")] == [{}] * 3
    assert [*open_benchmark("twinset", tmp_path / "out").metrics] == []


def test_a_stage_without_second_captions_is_told_when_the_recipe_is_loaded(tmp_path: Path) -> None:
    with pytest.raises(
        WrongUse, match=r"source\.second: released has no second captions; name a stage of second-captions"
    ):
        recipe(tmp_path, "http://127.0.0.1:1/v1", negatives="released")
