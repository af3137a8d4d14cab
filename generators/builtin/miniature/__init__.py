"""The built-in miniature: videos and stills that the project draws itself, annotated exactly as their sources are.

    action_genome/annotations.pkl   action_genome/videos/VIDEO.mp4
    gebc/annotations.json           gebc/videos/VIDEO.(mp4|mkv)
    youcook2/annotations.json       youcook2/videos/VIDEO.(mp4|mkv)
    stills/                         as `generators.builtin.photos` says

A figure acts with things in a room (Action Genome, GEBC) and hands cook on a counter (YouCook2), so every relation,
boundary and step is known. Some files are odd on purpose: a rotation flag, a variable frame rate, NTSC rates, B-frames
with open groups of pictures, names that start with a dash. The stills are one world of scenes, whose captions,
segments and attributes are what GeneCIS is made from.
"""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

from generators.builtin.atomic_folder import atomic_folder
from generators.builtin.miniature.cooking_videos import cooking_videos, database_entry
from generators.builtin.miniature.event_videos import event_boundaries, event_videos
from generators.builtin.miniature.home_videos import home_videos, scene_graphs
from generators.builtin.photos import draw_stills
from manifests.locations import miniature_folder

PICKLE_PROTOCOL = 4  # fixed, because the default moves with Python and the bytes must not


def ensure() -> Path:
    """The folder of the miniature, drawn first where this machine does not have it yet (some fifteen seconds)."""
    folder = miniature_folder()
    if not folder.is_dir():
        draw(folder)
    return folder


def draw(folder: Path) -> None:
    """Draw the whole miniature into ``folder``, which appears complete or not at all."""
    with atomic_folder(folder) as unfinished:
        for name in ("action_genome", "gebc", "youcook2"):
            (unfinished / name / "videos").mkdir(parents=True)
        draw_action_genome(unfinished / "action_genome")
        draw_gebc(unfinished / "gebc")
        draw_youcook2(unfinished / "youcook2")
        (unfinished / "stills").mkdir()
        draw_stills(unfinished / "stills")


def draw_action_genome(folder: Path) -> None:
    """Videos and ``annotations.pkl``, structured like object_bbox_and_relationship.pkl."""
    annotated: dict[str, Any] = {}
    for name, (play, film) in home_videos().items():
        film.write(folder / "videos", name)
        annotated |= scene_graphs(name, play, film.rate)
    (folder / "annotations.pkl").write_bytes(pickle.dumps(annotated, PICKLE_PROTOCOL))


def draw_gebc(folder: Path) -> None:
    """Videos and ``annotations.json``, structured like Kinetics-GEB+'s val.json."""
    annotated: dict[str, Any] = {}
    for name, (play, film, subject) in event_videos().items():
        film.write(folder / "videos", name)
        annotated[name] = event_boundaries(name, play, subject)
    _write_json(folder / "annotations.json", annotated)


def draw_youcook2(folder: Path) -> None:
    """Videos and ``annotations.json``, structured like youcookii_annotations_trainval.json."""
    database: dict[str, Any] = {}
    for name, (recipe, film) in cooking_videos().items():
        film.write(folder / "videos", name)
        database[name] = database_entry(name, recipe)
    _write_json(folder / "annotations.json", {"database": database})


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", "utf-8")
