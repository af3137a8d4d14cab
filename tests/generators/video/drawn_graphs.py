"""Small graphs of frames that tests draw, and the published loop over them, written down a second time."""

import json
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from typing import Any

from twinset.generators.video.action_genome import ActionGenome
from twinset.generators.video.frame_pair import FramePairCandidate
from twinset.shards.contracts import Context

KINDS = ("attention_relationship", "spatial_relationship", "contacting_relationship")
SPATIAL = ("in_front_of", "behind", "on_the_side_of", "above")
CONTACTING = ("holding", "touching", "not_contacting", "other_relationship")
Frames = dict[str, list[dict[str, Any]]]


def thing(name: str, attention: Any, spatial: Any, contacting: Any, **more: Any) -> dict[str, Any]:
    return {"class": name, **dict(zip(KINDS, (attention, spatial, contacting), strict=True)), **more}


def saved(folder: Path, frames: Frames) -> Path:
    path = folder / "graphs.jsonl"
    path.write_text("".join(json.dumps({"frame": k, "objects": v}) + "\n" for k, v in frames.items()), "utf-8")
    return path


def generator(path: Path, skip: int = 1, exclusive: bool = False) -> ActionGenome:
    source = ActionGenome(kind="action-genome", annotations=path, media=path.parent, skip=skip, exclusive=exclusive)
    return source.open(Context("eq-ag"))


def planned(path: Path, skip: int = 1, exclusive: bool = False) -> list[FramePairCandidate]:
    return list(generator(path, skip, exclusive).plan())


def story(*relations: tuple[Any, Any, Any], name: str = "bag", video: str = "A.mp4") -> Frames:
    return {f"{video}/{10 * i:06d}.png": [thing(name, *three)] for i, three in enumerate(relations, 1)}


HOLD = (["looking_at"], ["in_front_of"], ["holding"])
AWAY = (["not_looking_at"], ["behind"], ["not_contacting"])


def said(one: dict[str, Any]) -> list[tuple[str, str]]:
    """Contact and place of every caption of an object."""
    pairs = product(one[KINDS[2]] or [], one[KINDS[1]] or [])
    return [pair for pair in pairs if not {"other_relationship", "unsure"} & set(pair)]


def oracle(frames: Frames, skip: int, exclusive: bool = False) -> set[tuple[str, str, int, int]]:
    """The issue's loop, written down again: 1-based, from the file's own lists, without the generator's parts."""
    tracks: dict[tuple[str, str], list[tuple[int, dict[str, Any]]]] = {}
    for frame, objects in frames.items():
        video, name = frame.split("/")
        for one in objects:
            if one.get("visible", True):
                tracks.setdefault((video, one["class"].replace("_", "")), []).append((int(name[:-4]), one))
    emitted = set()
    for (video, name), track in tracks.items():
        f = [None, *sorted(track, key=lambda entry: entry[0])]
        n = len(track)
        i = 1
        while i <= n:
            chosen = False
            j = i + 1
            while j <= n:
                (number0, one0), (number1, one1) = f[i], f[j]  # type: ignore[misc]
                differing = sum(set(one0[kind] or ()) != set(one1[kind] or ()) for kind in KINDS)
                mine, theirs = set(said(one0)), set(said(one1))
                differ = mine - theirs and theirs - mine if exclusive else mine and theirs and mine != theirs
                if differing >= 2 and differ:
                    emitted.add((video, name, number0, number1))
                    chosen = True
                    j += 1 + skip
                else:
                    j += 1
            i += 1 + skip if chosen else 1
    return emitted


def identities(pairs: Iterable[FramePairCandidate]) -> set[tuple[str, str, int, int]]:
    return {(pair.video, json.loads(pair.provenance)["object"], int(pair.at0), int(pair.at1)) for pair in pairs}
