"""Pairs that one encoder confuses: what is planned and made, what stages must fit together, and real photographs."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from PIL import Image

from tests.generators.finished_stage import write_index
from tests.models.language_models.chat_server import Body, Reply, completion, serving
from twinset.generators.caption_twins import choice
from twinset.generators.confused_pairs import generator, search
from twinset.generators.confused_pairs.generator import ConfusedCandidate
from twinset.generators.confused_pairs.source import ConfusedPairs
from twinset.generators.contract import check_source
from twinset.generators.neighbours.table import read_features
from twinset.manifests.canonical import canonical_json
from twinset.manifests.errors import WrongUse
from twinset.manifests.recipe import parse_recipe
from twinset.models.encoders.contract import Floats, unit
from twinset.models.encoders.image_towers import THUMBNAIL, InBuild, open_tower, tower_files
from twinset.shards.contracts import Context
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.kinds.pair import Pair
from twinset.shards.kinds.samples import Rejected
from twinset.shards.media.decode import decode
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar
from twinset.stages.run_here import build_here

SHARED = Path(__file__).resolve().parents[4] / "shared" / "data"
PHOTOS, TOKENS = SHARED / "images" / "flickr8k", SHARED / "captions" / "flickr8k_token.txt"
FEATURES = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in ("key", "identity", "image_sha256")),
        pa.field("features", pa.list_(pa.float32())),
    ]
)
IMAGES = 40


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> FinishedStage:
    """A built stage of noise; every fourth image is of another split."""
    folder, drawn = tmp_path_factory.mktemp("photos"), np.random.default_rng(0)
    rows = []
    for number in range(IMAGES):
        name = f"{number:02d}.png"
        Image.fromarray(drawn.integers(0, 256, (20, 30, 3), np.uint8)).save(folder / name)
        split = "train" if number % 4 == 3 else "test"
        rows += [
            {"caption_id": f"{name}#{n}", "image": name, "caption": f"{n} of {name}", "split": split} for n in (0, 1)
        ]
    (folder / "captions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    source = {"kind": "image-captions", "captions": str(folder / "captions.jsonl"), "images": str(folder)}
    raw = {"name": "n", "subsets": {"photos": {"source": {**source, "licence": "CC0-1.0"}, "shard_size": 15}}}
    build_here(parse_recipe(raw), str(folder / "out"))
    return FinishedStage(Store(str(folder / "out")), "photos")


def table(folder: Path, name: str, features: Mapping[str, Floats], rejected: Sequence[str] = ()) -> FinishedStage:
    rows = [
        {"key": f"{name}-{sha256}", "identity": json.dumps([sha256]), "image_sha256": sha256, "features": one.tolist()}
        for sha256, one in features.items()
    ]
    lost = [{"key": one, "identity": json.dumps([one]), "reason": "feature-not-finite"} for one in rejected]
    return write_index(pa.Table.from_pylist(rows, FEATURES), folder, name, len(rows) + len(lost), 7, lost)


def encoded(photos: FinishedStage, seed: int, spread: float) -> dict[str, Floats]:
    drawn, names = np.random.default_rng(seed), photos.read(["image_sha256"])["image_sha256"].to_pylist()
    return dict(zip(names, unit((drawn.normal(size=(len(names), 12)) * spread + 1).astype(np.float32)), strict=True))


def source(**settings: Any) -> ConfusedPairs:
    stages = {"images": "photos", "alike": "first", "apart": "second"}
    return ConfusedPairs(kind="confused-pairs", licence="CC0-1.0", **{**stages, **settings})


def context(*stages: FinishedStage) -> Context:
    return Context("confused", earlier=dict(zip(("photos", "first", "second"), stages, strict=True)).__getitem__)


def planned(settings: ConfusedPairs, stages: Context) -> list[ConfusedCandidate]:
    return list(settings.open(stages).plan())


@pytest.fixture
def stages(photos: FinishedStage, tmp_path: Path) -> Context:
    first, second = (table(tmp_path, name, encoded(photos, *how)) for name, how in FIRST_SECOND.items())
    return context(photos, first, second)


FIRST_SECOND = {"first": (1, 0.3), "second": (2, 1.0)}


def test_all_pairs_between_the_thresholds_are_planned_the_largest_difference_first(
    photos: FinishedStage, stages: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = source(above=0.9, uses_of_image=IMAGES)
    check_source(settings, stages)
    assert max(Counter(one.group for one in planned(settings, stages)).values()) == choice.MOST_PAIRS
    monkeypatch.setattr(choice, "MOST_PAIRS", 1000)
    rows = photos.read(["image_sha256", "image_id", "split"]).to_pylist()
    near, far = (encoded(photos, *how) for how in FIRST_SECOND.values())
    expected = {}
    for at, one in enumerate(rows):
        for other in rows[at + 1 :]:
            both = one["image_sha256"], other["image_sha256"]
            cosines = [float(np.dot(*(every[sha256].astype(float) for sha256 in both))) for every in (near, far)]
            if cosines[0] > 0.9 and cosines[1] < 0.6 and one["split"] == other["split"]:
                expected[tuple(sorted((one["image_id"], other["image_id"])))] = cosines
    found = planned(settings, stages)
    assert len(expected) > 20 and {one.image_ids for one in found} == expected.keys()
    for one in found:
        assert (one.alike, one.apart) == pytest.approx(expected[one.image_ids], abs=1e-12)
        assert one.split == ("train" if int(one.image_ids[0][:2]) % 4 == 3 else "test")
        assert one.captions0 == tuple(f"{n} of {one.image_ids[0]}" for n in (0, 1))
    gaps = [one.alike - one.apart for one in found]
    firsts = [gap for gap, one in zip(gaps, found, strict=True) if one.group == one.key]
    assert gaps[0] == max(gaps) and firsts == sorted(firsts, reverse=True) and 1 < len(firsts) < len(found)


def test_every_pair_is_planned_or_counted(photos: FinishedStage, stages: Context) -> None:
    settings = source(above=0.9, uses_of_image=30)
    opened = settings.open(stages)
    found = list(opened.plan())
    assert isinstance(opened, generator.ConfusedPairGenerator)
    assert len(found) + sum(opened.excluded.values()) == len(opened._found()[1])
    assert opened.excluded.keys() <= settings.reasons.keys()
    assert opened.excluded["large-group"] > 0 and opened.excluded["other-split"] > 0
    assert "used-often" in planned_out(source(above=0.9, uses_of_image=1), stages)


def planned_out(settings: ConfusedPairs, stages: Context) -> Mapping[str, int]:
    opened = settings.open(stages)
    list(opened.plan())
    return opened.excluded


def test_photographs_are_decoded_when_their_pair_is_taken(stages: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded = list[str]()

    def counted(content: bytes, where: str) -> Image.Image:
        decoded.append(where)
        return decode(content, where)

    monkeypatch.setattr(generator, "decode", counted)
    opened = source(above=0.9).open(stages)
    made = opened.make(list(opened.plan())[:5])
    next(iter(made))
    assert len(decoded) == 2


def test_no_photograph_is_used_too_often(stages: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "MOST_PAIRS", 1000)
    every = planned(source(above=0.9, uses_of_image=IMAGES), stages)
    for uses in (1, 2, 3):
        found = planned(source(above=0.9, uses_of_image=uses), stages)
        assert Counter(name for one in found for name in one.image_ids).most_common(1)[0][1] == uses
        left = Counter(name for one in found for name in one.image_ids)
        gone = [one for one in every if one.key not in {kept.key for kept in found}]
        assert all(max(left[name] for name in one.image_ids) >= uses for one in gone)


def test_blocks_threads_and_order_of_the_other_table_change_nothing(
    photos: FinishedStage, stages: Context, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = planned(source(above=0.9, threads=1), stages)
    turned = table(tmp_path, "turned", dict(reversed(encoded(photos, *FIRST_SECOND["second"]).items())))
    monkeypatch.setattr(search, "ROWS", 3)
    monkeypatch.setattr(search, "COLUMNS", 5)
    assert planned(source(above=0.9, threads=2), context(photos, stages.earlier("first"), turned)) == expected


def test_a_pair_has_the_photographs_and_all_their_captions(photos: FinishedStage, stages: Context) -> None:
    opened = source(above=0.9).open(stages)
    candidates = list(opened.plan())[:5]
    for one, made in zip(candidates, opened.make(candidates), strict=True):
        assert isinstance(made, Pair) and made.captions1 == one.captions1 and made.scores == {
            "alike": one.alike, "apart": one.apart
        }  # fmt: skip
        pixels = np.asarray(Image.open(Path(photos.store.root).parent / one.image_ids[0]))
        assert made.image0.pixels.shape == pixels.shape
        assert np.abs(made.image0.pixels.astype(int) - pixels).mean() < 12  # JPEG of noise
    wrong = replace(candidates[0], image_sha256s=("0" * 64, "1" * 64))
    with pytest.raises(BrokenTar, match=r"stage://photos/.* is not what was planned from; run this build again"):
        list(opened.make([wrong]))


def test_a_language_model_writes_captions_of_both_photographs(stages: Context, tmp_path: Path) -> None:
    def reply(body: Body, number: int) -> Reply:
        photos = [json.loads(line) for line in body["messages"][-1]["content"].splitlines()[-2:]]
        (first,), (second,) = (one.values() for one in photos)
        if second.startswith(f"0 of {bad}"):
            return completion(json.dumps({"caption0": "A dog.", "caption1": "a dog."}))
        return completion(json.dumps({"caption1": f"not {first}".splitlines()[0], "caption0": " A cat. "}))

    with serving(reply) as server:
        engine = {"kind": "openai", "model": "m", "base_url": server.url, "answers": str(tmp_path / "answers")}
        settings = source(above=0.9, engine=engine)
        opened = settings.open(stages)
        candidates = [one for one in opened.plan() if isinstance(one, ConfusedCandidate)][:5]
        bad = candidates[3].image_ids[1]
        made = list(opened.make(candidates))
        check_source(settings, stages)
    for one, pair in zip(candidates, made, strict=True):
        if one.image_ids[1] == bad:
            detail = "a caption is null, or both are the same"
            assert isinstance(pair, Rejected) and pair.reason == "off-format" and pair.detail.startswith(detail)
        else:
            assert isinstance(pair, Pair) and pair.captions0 == ("A cat.", *one.captions0)
            assert pair.captions1 == (f"not {one.captions0[0]}", *one.captions1)
    assert isinstance(made[0], Pair) and isinstance(made[3], Rejected)
    assert "own" in source().how_made({}) and "a language model wrote" in settings.how_made({})


def test_images_that_an_encoder_failed_at_are_in_no_pair(
    photos: FinishedStage, stages: Context, tmp_path: Path
) -> None:
    every = encoded(photos, *FIRST_SECOND["second"])
    failed, others = next(iter(every)), dict(list(every.items())[1:])
    found = planned(source(above=0.9), context(photos, stages.earlier("first"), table(tmp_path, "s", others, [failed])))
    assert found and not any(failed in one.image_sha256s for one in found)


def test_stages_of_other_images_are_refused(photos: FinishedStage, stages: Context, tmp_path: Path) -> None:
    every = encoded(photos, *FIRST_SECOND["second"])
    name, first = next(iter(every)), stages.earlier("first")
    fewer = table(tmp_path, "fewer", dict(list(every.items())[1:]))
    for some in ((first, fewer), (fewer, first)):
        with pytest.raises(
            WrongUse, match=f"fewer: has no features of 1 images of .*first, such as {name}; name two st"
        ):
            planned(source(), context(photos, *some))
    alien = {canonical_json(one).hex().ljust(64, "0"): features for one, features in every.items()}
    both = [table(tmp_path, one, alien) for one in ("a", "b")]
    with pytest.raises(WrongUse, match=r"out/photos: lacks \d+ images of first, such as .*as source.images"):
        planned(source(above=-0.9, below=1), context(photos, *both))


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, 2.0])
def test_features_that_are_not_of_norm_1_are_named(photos: FinishedStage, tmp_path: Path, value: float) -> None:
    every = encoded(photos, 1, 1.0)
    broken = [*every][20]
    every[broken] = np.full(12, value, np.float32)
    with pytest.raises(WrongUse, match=f"bad: the features of image {broken} have norm .* instead of 1; remove the"):
        read_features(table(tmp_path, "bad", every))


def test_no_pair_and_too_many_pairs_say_what_to_do(stages: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WrongUse, match=r"none of 0 pairs of images with a cosine above 0.9999 in the first .* set a l"):
        planned(source(above=0.9999), stages)
    with pytest.raises(
        WrongUse, match=r"none of \d\d+ pairs of images with a cosine above 0.8 .* below -0.99 in the s"
    ):
        planned(source(above=0.8, below=-0.99), stages)
    for module in (search, generator):
        monkeypatch.setattr(module, "MOST", 10)
    with pytest.raises(WrongUse, match=r"first: more than 10 pairs of images have a cosine above 0.8; set a higher"):
        planned(source(above=0.8), stages)


def test_stages_of_other_kinds_are_refused() -> None:
    stages = {
        "photos": {"source": {"kind": "confused-pairs", "images": "a", "alike": "b", "apart": "c", "licence": "MIT"}}
    }
    with pytest.raises(WrongUse, match="confused-pairs gives neither photographs with captions nor features"):
        parse_recipe(
            {
                "name": "n",
                "stages": {**stages, **{name: image_features("./x/photos") for name in "abc"}},
                "subsets": {"pairs": {"source": {**stages["photos"]["source"], "images": "photos"}}},
            }
        )


def image_features(images: str, model: str = THUMBNAIL) -> dict[str, Any]:
    return {"source": {"kind": "image-features", "images": images, "model": model}}


def test_thumbnails_are_alike_where_layouts_of_colours_are() -> None:
    drawn = np.random.default_rng(0)
    picture = Image.fromarray(drawn.integers(0, 256, (64, 48, 3), np.uint8))
    bright = Image.fromarray((np.asarray(picture) // 2 + 90).astype(np.uint8))
    flat = [Image.new("RGB", (9, 9), colour) for colour in ("red", "black", "white")]
    turned = picture.rotate(180)
    pictures = [picture, bright, picture.resize((240, 320), Image.Resampling.NEAREST), turned, *flat]
    found = open_tower(THUMBNAIL, InBuild("cpu", 2, 1))(pictures)
    assert tower_files(THUMBNAIL).paths == () and found.dtype == np.float32
    cosines = found @ found.T
    assert np.allclose(np.diag(cosines), 1, atol=1e-6)
    assert cosines[0, 1] > 0.99 and cosines[0, 2] > 0.99 and abs(cosines[0, 3]) < 0.3
    assert cosines[5, 6] > 0.99 and abs(cosines[0, 5]) < 0.01


@pytest.mark.slow  # two encoders over 800 photographs
@pytest.mark.skipif(not PHOTOS.is_dir(), reason="the photographs of Flickr8k are not here")
def test_pairs_of_real_photographs_are_those_of_all_cosines(tmp_path: Path) -> None:
    names = {path.name for path in PHOTOS.iterdir()}
    lines = [line for line in TOKENS.read_text().splitlines() if line.partition("#")[0] in names]
    (tmp_path / "tokens.txt").write_text("\n".join(lines) + "\n")
    photos = {
        "kind": "image-captions",
        "captions": str(tmp_path / "tokens.txt"),
        "images": str(PHOTOS),
        "licence": "MIT",
    }
    pairs = {"kind": "confused-pairs", "images": "photos", "alike": "first", "apart": "second", "licence": "MIT"}
    raw = {
        "name": "n",
        "stages": {
            "photos": {"source": photos},
            "first": image_features("photos", "small-clip"),
            "second": image_features("photos"),
        },
        "subsets": {"pairs": {"source": pairs}},
    }
    counts = build_here(parse_recipe(raw), str(tmp_path / "out"), 1)["subsets"]
    store = Store(str(tmp_path / "out"))
    (first, near), (second, far) = (
        read_features(FinishedStage(store, f"_stages/{one}")) for one in ("first", "second")
    )
    assert first == second and len(first) == 800
    near, far = (one.astype(np.longdouble) @ one.T.astype(np.longdouble) for one in (near, far))
    expected = np.argwhere(np.triu((near > 0.95) & (far < 0.6), 1))
    settings = source(alike="first", apart="second")
    opened = settings.open(Context("c", earlier=lambda one: FinishedStage(store, f"_stages/{one}")))
    names_found, found, *_ = opened._found()
    assert names_found == first and np.array_equal(found, expected) and len(found) > 1000
    assert counts["pairs"]["kept"] > 100
    used = FinishedStage(store, "pairs").read(["image0_sha256", "image1_sha256"])
    assert max(Counter([*used[0].to_pylist(), *used[1].to_pylist()]).values()) == 2
