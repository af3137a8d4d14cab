"""What a kind of mutated inputs is; and kinds of other people's files: recipes, annotations, images and clips."""

from __future__ import annotations

import csv
import json
import pickle
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import yaml
from PIL import Image

from tests.evaluation.benchmarks.made_layouts import film
from tests.generators.captions.test_captions import FORMATS
from tests.generators.made_inputs import parquet_of, write
from twinset.cli.main import main
from twinset_demo import MINIATURE, PROCEDURAL

Make = Callable[[Path], object]
Act = Callable[[Path], int | None]


@dataclass(frozen=True)
class Kind:
    """A kind of inputs.

    make: fills an empty folder, which is the working directory meanwhile. acts: read such a folder; each returns an
    exit code or raises what its function raises. files: patterns of those that are mutated. weight: how many cases it
    has to one of others.
    """

    name: str
    make: Make
    acts: Mapping[str, Act]
    files: Sequence[str]
    weight: int = 2

    @property
    def place(self) -> str:
        return "".join(letter if letter.isalnum() else "-" for letter in self.name)


def command(*arguments: str) -> Act:
    return lambda _: main(arguments)


def recipe(header: Mapping[str, Any] | None = None, **stages: Mapping[str, Any]) -> None:
    """Write ``recipe.yaml``. stages: subsets, or stages where ``below`` is among their keys."""
    parts: dict[str, dict[str, Any]] = {"subsets": {}, "stages": {}}
    for name, stage in stages.items():
        settings = dict(stage)
        parts["stages" if settings.pop("below", False) else "subsets"][name.replace("_", "-")] = settings
    parts = {key: part for key, part in parts.items() if part}
    text = {"name": "mutated", "max_missing": 1, **parts, **(header or {})}
    Path("recipe.yaml").write_text(yaml.safe_dump(text, sort_keys=False), "utf-8")


def of_source(kind: str, **settings: Any) -> dict[str, Any]:
    return {"source": {"kind": kind, "licence": "CC0", **settings}}


def copied(*names: str | Path) -> None:
    """Copy files, of the miniature unless they are named in full, into the working directory."""
    for name in names:
        shutil.copy(MINIATURE / name, Path(name).name)


def planned(*names: str | Path, **stages: Mapping[str, Any]) -> Make:
    def make(folder: Path) -> None:
        copied(*names)
        recipe(**stages)

    return make


def of_genecis(kind: str, **files: str) -> dict[str, dict[str, Any]]:
    """Both tasks of a kind of galleries."""
    return {task: {**of_source(kind, task=task, media=".", **files), "count": 6} for task in ("focus", "change")}


PLAN = {"plan": command("plan", "recipe.yaml"), "plan --out": command("plan", "recipe.yaml", "--out", "out")}
ONLY_PLAN = {"plan": PLAN["plan"]}
BUILD = {"build": command("build", "recipe.yaml", "--out", "out", "--workers", "1")}


def recipes(folder: Path) -> None:
    copied(PROCEDURAL / "manifest.json", "small_world/negatives.csv")
    shutil.copy(MINIATURE / "gebc" / "annotations.json", "gebc.json")
    recipe(
        {"seed": 3, "description": "d"},
        negatives={**of_source("replayed-negatives", captions=["negatives.csv"]), "below": True, "shard_size": 7},
        prompts={**of_source("negative-prompts", negatives="negatives", suffix=", sharp"), "below": True},
        events={
            **of_source("gebc", annotations="gebc.json", media="."), "split": "test", "count": 9, "shard_size": 4,
            "filters": [{"kind": "motion-words"}, {"kind": "equal-captions"}, {"kind": "faces", "model": "hog"}],
            "encoding": {"format": "jpg", "quality": 95}, "pool": "cpu", "screening": True,
        },
        text={**of_source("text-pairs", negatives="prompts", train=0.5), "split": "validation"},
        pictures={**of_source("kubric", aspect="counting", assets="manifest.json"), "count": 2},
    )  # fmt: skip


def action_genome(form: str, folder: Path) -> None:
    """Twelve annotated frames. form: ``pkl``, the official one, or ``jsonl``."""
    frames = dict(islice(pickle.loads((MINIATURE / "action_genome/annotations.pkl").read_bytes()).items(), 12))
    path = Path(f"annotations.{form}")
    if form == "pkl":
        path.write_bytes(pickle.dumps(frames, 4))
    else:
        lines = [json.dumps({"frame": name, "objects": objects}) for name, objects in frames.items()]
        path.write_text("\n".join([*lines, ""]))
    recipe(**pairs_of("action-genome", path.name))


def captions(folder: Path) -> None:
    """A folder and a recipe for each form of captions that is read."""
    forms = {kind: files for files, kind, *_ in reversed(FORMATS.values())}
    for kind, files in forms.items():
        recipe(graphs=of_source("scene-graphs", captions=[str(write(Path(kind), files))]))
        Path("recipe.yaml").rename(f"{kind}.yaml")


def plan_each(folder: Path) -> int:
    """Plan all recipes of a folder; the largest exit code."""
    return max(main(("plan", path.name)) for path in sorted(folder.glob("*.yaml")))


def released(folder: Path) -> None:
    """Released negative captions in every form."""
    copied("small_world/negatives.csv")
    rows = [*csv.DictReader(Path("negatives.csv").read_text("utf-8").splitlines())]
    Path("negatives2.parquet").write_bytes(parquet_of(rows))
    records = {
        str(n): {"filename": f"{n}.jpg", "caption": f"a red cup {n}", "negative_caption": f"a blue cup {n}"}
        for n in range(3)
    }
    Path("replace_att.json").write_text(json.dumps(records))
    names = ["negatives.csv", "negatives2.parquet", "replace_att.json"]
    recipe(negatives=of_source("replayed-negatives", captions=names))


def vocabularies(folder: Path) -> None:
    from twinset.generators.prompt_to_prompt.vocabulary import vocabulary_file

    shutil.copy(vocabulary_file("figure-15"), "words.yaml")
    recipe(pictures={**of_source("stable-diffusion", model="./model", vocabulary="./words.yaml"), "count": 4})


def noise(path: str, seed: int, size: tuple[int, int] = (24, 16)) -> None:
    Image.frombytes("RGB", size, Random(seed).randbytes(3 * size[0] * size[1])).save(path)


def noise_pairs(suffixes: Sequence[str]) -> list[dict[str, Any]]:
    """A pair of images of noise of each suffix, and their records."""
    records = []
    for n, suffix in enumerate(suffixes):
        names = {f"image{side}": f"{n}-{side}.{suffix}" for side in (0, 1)}
        for side, name in enumerate(names.values()):
            noise(name, 2 * n + side)
        records.append({"id": f"p{n}", **names, "caption0": f"left {n}", "caption1": f"right {n}"})
    return records


def pairs(form: str, folder: Path) -> None:
    """Three pairs of images of three formats. form: of the annotation."""
    records = noise_pairs(("png", "jpg", "webp"))
    path = Path(f"pairs.{form}")
    if form == "json":
        path.write_text(json.dumps([{**record, "caption0": [record["caption0"], "also"]} for record in records]))
    elif form == "jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        path.write_bytes(parquet_of(records))
    source = of_source("image-pairs", annotations=path.name, media=".")
    recipe(pairs={**source, "encoding": {"format": "png"}, "shard_size": 2})


def clips(folder: Path) -> None:
    """Two short clips, of which YouCook2's rule takes two frames each."""
    database = {}
    for name, suffix in (("one", "mp4"), ("two", "mkv")):
        film(Path(f"{name}.{suffix}"), 2)
        steps = [{"id": n, "segment": [n, n + 0.5], "sentence": f"cut the {n} onion"} for n in range(2)]
        known = {"subset": "training", "duration": 2.0, "video_url": "", "recipe_type": "1"}
        database[name] = {"annotations": steps, **known}
    Path("annotations.json").write_text(json.dumps({"database": database}))
    recipe(pairs={**of_source("youcook2", annotations="annotations.json", media="."), "filters": [{"kind": "blank"}]})


def pairs_of(kind: str, annotations: str = "annotations.json") -> dict[str, Any]:
    return {"pairs": of_source(kind, annotations=annotations, media=".")}


VAW = of_genecis("genecis-attributes", annotations="vaw.json", taxonomy="attribute_types.json")
SCENES = {**of_source("kubric", aspect="location", assets="manifest.json"), "count": 3}
KINDS = (
    Kind("recipe", recipes, ONLY_PLAN, ["recipe.yaml"], 6),
    Kind("Action Genome, pickle", partial(action_genome, "pkl"), PLAN, ["*.pkl"], 3),
    Kind("Action Genome, lines", partial(action_genome, "jsonl"), PLAN, ["*.jsonl"]),
    Kind("GEBC", planned("gebc/annotations.json", **pairs_of("gebc")), PLAN, ["*.json"]),
    Kind("YouCook2", planned("youcook2/annotations.json", **pairs_of("youcook2")), PLAN, ["*.json"]),
    Kind(
        "VAW and taxonomy", planned("stills/vaw.json", "stills/attribute_types.json", **VAW), ONLY_PLAN, ["*.json"], 3
    ),
    Kind(
        "COCO panoptic",
        planned("stills/panoptic.json", **of_genecis("genecis-objects", annotations="panoptic.json")),
        ONLY_PLAN,
        ["*.json"],
    ),
    Kind("captions", captions, {"plan": plan_each}, ["*/**/*"], 4),
    Kind("released negatives", released, PLAN, ["*.csv", "*.parquet", "*.json"], 3),
    Kind("vocabulary", vocabularies, ONLY_PLAN, ["words.yaml"]),
    Kind("manifest of assets", planned(PROCEDURAL / "manifest.json", scenes=SCENES), ONLY_PLAN, ["manifest.json"]),
    *(Kind(f"pairs, {form}", partial(pairs, form), PLAN, [f"pairs.{form}"]) for form in ("json", "jsonl", "parquet")),
    Kind("images", partial(pairs, "json"), BUILD, ["*.png", "*.jpg", "*.webp"], 3),
    Kind("clips", clips, BUILD, ["*.mp4", "*.mkv"], 3),
)
