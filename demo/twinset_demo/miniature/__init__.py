"""The built-in miniature: videos and photos that the project paints itself, annotated exactly as their sources are.

    action_genome/annotations.pkl   action_genome/videos/VIDEO.mp4
    gebc/annotations.json           gebc/videos/VIDEO.(mp4|mkv)
    youcook2/annotations.json       youcook2/videos/VIDEO.(mp4|mkv)
    stills/                         as `twinset_demo.photos` says
    scenes/captions.json            COCO Captions without images, which the engine `kubric` can draw
    small_world/negatives.csv       small_world/photos/NNN.png; the small model can draw both captions of a row
    small_world/more_negatives.csv  120 rows of such captions

An actor handles things in a room (Action Genome, GEBC) and hands cook on a counter (YouCook2), so every relation,
boundary and step is known. Some files are odd on purpose: a rotation flag, a variable frame rate, NTSC rates, B-frames
with open groups of pictures, names that start with a dash. The photos are one world of scenes, whose captions,
segments and attributes are what GeneCIS is made from. Images of the captions of scenes are rendered where a recipe asks
for them.
"""

import json
import pickle
from functools import partial
from pathlib import Path
from typing import Any

from twinset.shards.storage.whole_file import ensure_drawn
from twinset_demo.drawn import MINIATURE
from twinset_demo.in_processes import in_processes
from twinset_demo.miniature.cooking_videos import COOKING_VIDEOS, database_entry
from twinset_demo.miniature.event_videos import EVENT_VIDEOS, event_boundaries
from twinset_demo.miniature.home_videos import HOME_VIDEOS, scene_graphs
from twinset_demo.miniature.scene_captions import write_scenes
from twinset_demo.miniature.small_world import write_small_world
from twinset_demo.photos import write_photos

PICKLE_PROTOCOL = 4  # fixed, because the default moves with Python and the bytes must not


def ensure() -> Path:
    """The folder of the miniature, painted first where this machine does not have it yet (some fifteen seconds)."""
    return ensure_drawn(MINIATURE)


def paint(folder: Path) -> None:
    """Paint the whole miniature into an empty folder."""
    for name in SUBFOLDERS:
        (folder / name).mkdir()
    in_processes(partial(_write, folder), SUBFOLDERS)


def _write(folder: Path, name: str) -> None:
    SUBFOLDERS[name](folder / name)


def write_action_genome(folder: Path) -> None:
    """Videos and ``annotations.pkl``, structured like object_bbox_and_relationship.pkl."""
    annotated: dict[str, Any] = {}
    for name, film in HOME_VIDEOS.items():
        film.write(folder / "videos", name)
        annotated |= scene_graphs(name, film)
    (folder / "annotations.pkl").write_bytes(pickle.dumps(annotated, PICKLE_PROTOCOL))


def write_gebc(folder: Path) -> None:
    """Videos and ``annotations.json``, structured like Kinetics-GEB+'s val.json."""
    for name, film in EVENT_VIDEOS.items():
        film.write(folder / "videos", name)
    _write_json(folder, {name: list(event_boundaries(name, film.show)) for name, film in EVENT_VIDEOS.items()})


def write_youcook2(folder: Path) -> None:
    """Videos and ``annotations.json``, structured like youcookii_annotations_trainval.json."""
    for name, film in COOKING_VIDEOS.items():
        film.write(folder / "videos", name)
    _write_json(folder, {"database": {name: database_entry(name, film.show) for name, film in COOKING_VIDEOS.items()}})


def _write_json(folder: Path, value: Any) -> None:
    (folder / "annotations.json").write_text(json.dumps(value, indent=1) + "\n", "utf-8")


SUBFOLDERS = {
    "action_genome": write_action_genome,
    "gebc": write_gebc,
    "youcook2": write_youcook2,
    "stills": write_photos,
    "scenes": write_scenes,
    "small_world": write_small_world,
}
