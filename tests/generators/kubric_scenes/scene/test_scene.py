"""Bystanders are of other kinds than what captions name, whole in both pictures, hide nothing, and are not between.

Points of a scene come to lie where a pinhole camera shows them, and things fill the picture.
Looks vary what they say, in bounds, and the plain one as before.
Background pictures that claim more pixels than memory holds are refused by their header.
"""

import math
import re
import struct
import zlib
from collections import Counter
from itertools import islice
from pathlib import Path

import cv2
import numpy as np
import pytest

from twinset.contracts.canonical import generator_for
from twinset.contracts.errors import WrongUse
from twinset.generators.kubric_scenes.assets.shelf import AssetShelf
from twinset.generators.kubric_scenes.captions.pair_sampling import draw_pairs
from twinset.generators.kubric_scenes.captions.vocabulary import load_vocabulary
from twinset.generators.kubric_scenes.proof import foresee, measure
from twinset.generators.kubric_scenes.scene.bystanders import add_bystanders, unnamed_objects
from twinset.generators.kubric_scenes.scene.camera import FILLED, frame_things, project, sample_shot, unproject
from twinset.generators.kubric_scenes.scene.composition import Refuted, compose, lit_from, sunlight
from twinset.generators.kubric_scenes.scene.look import FRONT_TURN, MATERIALS, PLAIN, Look
from twinset.generators.kubric_scenes.scene.panoramas import MOST_PIXELS, refuse_huge
from twinset.generators.kubric_scenes.scene.parts import Drawn, NamedAsset, View
from twinset.generators.kubric_scenes.scene.surroundings import LIT, lit_by_sun_and_sky, sample_ground
from twinset_demo import PROCEDURAL


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> AssetShelf:
    return AssetShelf(PROCEDURAL / "manifest.json", tmp_path_factory.mktemp("shelf"))


def test_no_bystander_is_what_a_caption_names(shelf: AssetShelf) -> None:
    shoe, toy = NamedAsset("brown shoe", "brown-shoe"), NamedAsset("green turtle toy", "green-turtle-toy")
    names = unnamed_objects(Drawn("attribute", shoe, shoe, toy, "left", "left", 1, 1), shelf)
    vocabulary = load_vocabulary()
    assert len(names) > 10
    assert not any(vocabulary.entry(name).kind == "shoe" or name.endswith(("shoe", " toy")) for name in names)


@pytest.mark.slow
def test_bystanders_are_in_nobodys_way(shelf: AssetShelf) -> None:
    added = 0
    for aspect in ("location", "counting", "attribute"):
        for planned in islice(draw_pairs(aspect, load_vocabulary(), shelf.entries, 5, "test"), 6):
            rng = generator_for(5, "test", f"{aspect}/{planned.index}")
            try:
                scene = compose(planned.drawn, shelf, 1.8, rng, [], 0, Look())
            except Refuted:
                continue
            named = (scene.things0, scene.things1)
            found = add_bystanders(planned.drawn, named, scene.view, Look(), shelf, rng)
            assert len(found) <= Look().bystanders
            added += len(found)
            for things in named:
                alone = measure(things, scene.view, foresee(things, scene.view, 128))
                together = measure(things + found, scene.view, foresee(things + found, scene.view, 128))
                assert [one.pixels for one in together[: len(things)]] == [one.pixels for one in alone]
                for one in together[len(things) :]:
                    assert one.visible > 0.97 and not one.cut and one.pixels > 30
                if planned.drawn.subject is not None:
                    middles = [(one.points.max(axis=0) + one.points.min(axis=0))[:2] / 2 for one in things]
                    for one in found:
                        _not_between(*middles, (one.points.max(axis=0) + one.points.min(axis=0))[:2] / 2)
    assert added >= 8


def _not_between(one: np.ndarray, other: np.ndarray, third: np.ndarray) -> None:  # type: ignore[type-arg]
    away = other - one
    share = float(np.clip((third - one) @ away / max(away @ away, 1e-9), 0, 1))
    assert np.linalg.norm(one + share * away - third) > 0.25


VIEW = View((0.0, -10.0, 0.0), (0.0, 0.0, 0.0), 50.0, 36.0, (0, 0, 1), 1.0, (1, 1, 1), (1, 1, 1))


def test_a_pinhole_camera() -> None:
    pixels, distances = project(np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 10.0, 1.0]]), VIEW, 360)
    # 50 mm before a sensor of 36 mm and 360 pixels: 500 pixels a unit at distance 1.
    assert pixels == pytest.approx(np.array([[180, 180], [230, 180], [180, 155]]))
    assert distances == pytest.approx([10, 10, 20])


def test_pixels_lead_back_to_the_scene() -> None:
    view = View((1.0, -6.0, 3.0), (0.2, 0.1, 0.3), 50.0, 36.0, (0, 0, 1), 1.0, (1, 1, 1), (1, 1, 1))
    depth = np.random.default_rng(3).uniform(4, 9, (20, 20)).astype(np.float32)
    pixels, distances = project(unproject(depth, view).reshape(-1, 3), view, 20)
    rows, columns = np.indices(depth.shape) + 0.5
    assert pixels == pytest.approx(np.stack([columns.ravel(), rows.ravel()], axis=1), abs=1e-4)
    assert distances == pytest.approx(depth.ravel(), rel=1e-5)


def test_things_lie_where_a_picture_wants_them() -> None:
    points = np.random.default_rng(7).uniform((-1, -1, 0), (1, 1, 2), (50, 3))
    pixels, _ = project(points, frame_things(VIEW, points, 0.5, filled=0.6, aside=(0.1, 0.25)), 2)
    middle, half = (pixels.max(axis=0) + pixels.min(axis=0)) / 2 - 1, (pixels.max(axis=0) - pixels.min(axis=0)) / 2
    assert middle == pytest.approx([0.1, 0.25], abs=0.02) and half.max() == pytest.approx(0.6, abs=0.03)


@pytest.mark.parametrize("elevation", [0.3, 0.5, 0.7])
def test_everything_fits_and_nothing_is_small(elevation: float) -> None:
    rng = np.random.default_rng(7)
    for _ in range(20):
        points = rng.uniform(-1, 1, (50, 3)) * rng.uniform(0.2, 3, 3) + [0, 0, 3]
        view = frame_things(VIEW, points, elevation)
        pixels, distances = project(points, view, 2)
        extent = np.abs(pixels - 1).max()
        assert (distances > 0).all() and FILLED * 0.93 < extent < FILLED * 1.07


def test_grounds_and_numbers_of_bystanders_are_even() -> None:
    looks = [Look().of_one_pair(np.random.default_rng(seed)) for seed in range(600)]
    grounds = Counter(ground for look in looks for ground in look.grounds)
    bystanders = Counter(look.bystanders for look in looks)
    assert set(grounds) == set(MATERIALS) and set(bystanders) == {0, 1, 2}
    for counts in (grounds, bystanders):
        assert max(counts.values()) < 1.4 * min(counts.values()), counts
    assert PLAIN.of_one_pair(np.random.default_rng(0)) == PLAIN


@pytest.mark.parametrize("material", MATERIALS)
def test_a_ground_is_neither_black_nor_white(material: str) -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        ground = sample_ground((material,), rng)  # type: ignore[arg-type]
        assert ground.material == material
        assert np.mean(ground.dark) < np.mean(ground.light)
        assert 0.08 < (np.mean(ground.dark) + np.mean(ground.light)) / 2 < 0.5
        assert all(0 <= channel <= 0.9 for colour in (ground.light, ground.dark, ground.joint) for channel in colour)


def test_every_light_is_equally_bright() -> None:
    rng = np.random.default_rng(4)
    hard = 0
    for _ in range(200):
        view = lit_by_sun_and_sky(lit_from(sunlight(rng), rng), rng)
        assert view.sky is not None and view.sun[1] < 0 < view.sun[2]
        sky = math.pi * (0.6 * np.mean(view.sky.zenith) + 0.4 * np.mean(view.sky.horizon))
        assert LIT[0] - 0.01 < view.sun_strength * view.sun[2] + sky < LIT[1] + 0.01
        hard += view.sun_angle < math.radians(2)
    assert 40 < hard < 120


def test_turns() -> None:
    rng = np.random.default_rng(5)
    turned = {
        name: np.degrees([np.abs(look.turn(front, 18.0, rng)) for _ in range(300)]).max()
        for name, look, front in (("free", Look(), False), ("front", Look(), True), ("facing", PLAIN, True))
    }
    assert turned["facing"] <= 18 < turned["front"] <= FRONT_TURN < 170 < turned["free"]


def test_cameras_look_down_more_steeply_in_later_tries() -> None:
    for look in (Look(), PLAIN):
        first, last = ([sample_shot(look, n, np.random.default_rng(s)) for s in range(40)] for n in (0, 7))
        assert np.mean([shot.elevation for shot in first]) + 0.2 < np.mean([shot.elevation for shot in last])
        assert all(0 < shot.flattest < shot.elevation for shot in first)
        assert (len({shot.focal_length for shot in first}) == 1) == (look is PLAIN)


WIDTH, HEIGHT = 16384, 8192


def radiance(width: int, height: int) -> bytes:
    return f"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y {height} +X {width}\n".encode()


def exr(width: int, height: int) -> bytes:
    window = struct.pack("<4i", 0, 0, width - 1, height - 1)
    attribute = b"dataWindow\0box2i\0" + struct.pack("<i", 16) + window
    return b"\x76\x2f\x31\x01\x02\0\0\0channels\0chlist\0\x01\0\0\0\0" + attribute + b"\0"


def png(width: int, height: int) -> bytes:
    header = b"IHDR" + struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return b"\x89PNG\r\n\x1a\n" + chunk + struct.pack(">I", 1 << 20) + b"IDAT"


@pytest.mark.parametrize("claims", [radiance, exr, png])
def test_a_header_that_claims_too_much_is_refused(tmp_path: Path, claims: object) -> None:
    file = tmp_path / "sky.hdr"
    file.write_bytes(claims(WIDTH, HEIGHT))  # type: ignore[operator]
    refuse_huge(file)
    for width, height in ((WIDTH, HEIGHT + 1), (60_000, 30_000)):
        file.write_bytes(claims(width, height))  # type: ignore[operator]
        said = f"sky.hdr: a picture of {width * height:,} pixels; at most {MOST_PIXELS:,} "
        with pytest.raises(WrongUse, match=re.escape(said)):
            refuse_huge(file)


def test_what_cannot_be_read_is_left_to_blender(tmp_path: Path) -> None:
    file = tmp_path / "sky.exr"
    refuse_huge(file)
    for content in (b"", b"#?RADIANCE", b"\x76\x2f\x31\x01", b"no panorama"):
        file.write_bytes(content)
        refuse_huge(file)


def test_sizes_are_read_off_files_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("twinset.generators.kubric_scenes.scene.panoramas.MOST_PIXELS", 64 * 32 - 1)
    cv2.imwrite(str(tmp_path / "sky.hdr"), np.ones((32, 64, 3), np.float32))
    with pytest.raises(WrongUse, match="a picture of 2,048 pixels"):
        refuse_huge(tmp_path / "sky.hdr")
    bpy = pytest.importorskip("bpy")
    world = Path(bpy.utils.system_resource("DATAFILES")) / "studiolights/world"
    with pytest.raises(WrongUse, match="a picture of 524,288 pixels"):
        refuse_huge(world / "city.exr")
