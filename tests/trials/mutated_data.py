"""Kinds of other people's files: recipes, annotations, captions, vocabularies, images and clips."""

from __future__ import annotations

import csv
import json
import pickle
import shutil
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from PIL import Image

from tests.evaluation.benchmarks.made_layouts import film
from twinset.cli.main import main
from twinset_demo import MINIATURE, PROCEDURAL

Make = Callable[[Path], object]
Act = Callable[[Path], int | None]


def command(*arguments: str) -> Act:
    """The ``twinset`` command."""
    return lambda _: main(arguments)


def recipe(**stages: Mapping[str, Any]) -> None:
    """Write ``recipe.yaml``. stages: subsets, or stages where ``makes_table`` is among their keys."""
    parts: dict[str, dict[str, Any]] = {"subsets": {}, "stages": {}}
    for name, stage in stages.items():
        given = dict(stage)
        parts["stages" if given.pop("below", False) else "subsets"][name.replace("_", "-")] = given
    text = yaml.safe_dump(
        {"name": "mutated", "max_missing": 1, **{key: part for key, part in parts.items() if part}}, sort_keys=False
    )
    Path("recipe.yaml").write_text(text, "utf-8")


def of_source(kind: str, **settings: Any) -> dict[str, Any]:
    """A stage of a recipe."""
    return {"source": {"kind": kind, "licence": "CC0", **settings}}


def copied(*names: str) -> None:
    """Copy files of the miniature into the working directory."""
    for name in names:
        shutil.copy(MINIATURE / name, Path(name).name)


PLAN = {"plan": command("plan", "recipe.yaml"), "plan --out": command("plan", "recipe.yaml", "--out", "out")}
BUILD = {"build": command("build", "recipe.yaml", "--out", "out", "--workers", "1")}


def recipes(folder: Path) -> None:
    """One recipe with every kind of setting; and the demo's, of which the stages are many."""
    shutil.copy(PROCEDURAL / "manifest.json", "manifest.json")
    shutil.copy(MINIATURE / "gebc" / "annotations.json", "gebc.json")
    shutil.copy(MINIATURE / "small_world" / "negatives.csv", "negatives.csv")
    recipe(
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
    given = yaml.safe_load(Path("recipe.yaml").read_text("utf-8"))
    Path("recipe.yaml").write_text(yaml.safe_dump({**given, "seed": 3, "description": "d"}, sort_keys=False))


def action_genome(folder: Path) -> None:
    copied("action_genome/annotations.pkl")
    frames: dict[str, Any] = pickle.loads(Path("annotations.pkl").read_bytes())
    few = dict(list(frames.items())[:12])
    Path("annotations.pkl").write_bytes(pickle.dumps(few, 4))
    recipe(pairs=of_source("action-genome", annotations="annotations.pkl", media="."))


def action_genome_lines(folder: Path) -> None:
    """The same as JSON lines."""
    shutil.copy(Path(__file__).parents[1] / "real" / "action_genome.jsonl", "annotations.jsonl")
    recipe(pairs=of_source("action-genome", annotations="annotations.jsonl", media="."))


def gebc(folder: Path) -> None:
    copied("gebc/annotations.json")
    recipe(pairs=of_source("gebc", annotations="annotations.json", media="."))


def youcook2(folder: Path) -> None:
    copied("youcook2/annotations.json")
    recipe(pairs=of_source("youcook2", annotations="annotations.json", media="."))


def vaw(folder: Path) -> None:
    copied("stills/vaw.json", "stills/attribute_types.json")
    files = {"annotations": "vaw.json", "taxonomy": "attribute_types.json", "media": "."}
    recipe(
        focus={**of_source("genecis-attributes", task="focus", **files), "count": 6},
        change={**of_source("genecis-attributes", task="change", **files), "count": 6},
    )


def panoptic(folder: Path) -> None:
    copied("stills/panoptic.json")
    files = {"annotations": "panoptic.json", "media": "."}
    recipe(
        focus={**of_source("genecis-objects", task="focus", **files), "count": 6},
        change={**of_source("genecis-objects", task="change", **files), "count": 6},
    )


CAPTIONS = [
    {"caption": f"a {word} cup on a table", "image_id": f"i{n}", "id": n}
    for n, word in enumerate(("red", "blue", "old"))
]


def captions(folder: Path) -> None:
    """Captions in every form that is read."""
    Path("captions.tsv").write_text(
        "".join(f"{one['caption']}\thttp://x.example/{one['image_id']}.jpg\n" for one in CAPTIONS)
    )
    Path("columns.tsv").write_text(
        "caption\timage_id\n" + "".join(f"{one['caption']}\t{one['image_id']}\n" for one in CAPTIONS)
    )
    Path("tokens.txt").write_text("".join(f"{one['image_id']}.jpg#0\t{one['caption']}\n" for one in CAPTIONS))
    Path("lines.jsonl").write_text("".join(json.dumps(one) + "\n" for one in CAPTIONS))
    images = [{"id": n, "file_name": f"{n}.jpg"} for n in range(3)]
    Path("coco.json").write_text(
        json.dumps({"images": images, "annotations": [{**one, "image_id": one["id"]} for one in CAPTIONS]})
    )
    pq.write_table(pa.Table.from_pylist(CAPTIONS), "table.parquet")
    Path("downloaded").mkdir()
    import tarfile

    rows = [
        {"key": f"{n:09d}", "caption": one["caption"], "status": "success", "url": "u"}
        for n, one in enumerate(CAPTIONS)
    ]
    pq.write_table(pa.Table.from_pylist(rows), "downloaded/00000.parquet")
    with tarfile.open("downloaded/00000.tar", "w") as tar:
        for row in rows:
            tar.addfile(tarfile.TarInfo(f"{row['key']}.jpg"))
    for name in (
        "captions.tsv",
        "columns.tsv",
        "tokens.txt",
        "lines.jsonl",
        "coco.json",
        "table.parquet",
        "downloaded",
    ):
        recipe(graphs=of_source("scene-graphs", captions=[name]))
        Path("recipe.yaml").rename(f"{Path(name).stem}.yaml")


def plan_each(folder: Path) -> int:
    """Plan all recipes of a folder; the largest exit code."""
    return max(main(("plan", path.name)) for path in sorted(folder.glob("*.yaml")))


def released(folder: Path) -> None:
    """Released negative captions in every form, and captions that rules make negatives of."""
    copied("small_world/negatives.csv")
    rows = [*csv.DictReader(Path("negatives.csv").read_text("utf-8").splitlines())]
    pq.write_table(pa.Table.from_pylist(rows), "negatives2.parquet")
    records = {
        str(n): {"filename": f"{n}.jpg", "caption": f"a red cup {n}", "negative_caption": f"a blue cup {n}"}
        for n in range(3)
    }
    Path("replace_att.json").write_text(json.dumps(records))
    recipe(
        negatives=of_source("replayed-negatives", captions=["negatives.csv", "negatives2.parquet", "replace_att.json"])
    )


def vocabularies(folder: Path) -> None:
    from twinset.generators.prompt_to_prompt.vocabulary import vocabulary_file

    shutil.copy(vocabulary_file("figure-15"), "words.yaml")
    recipe(pictures={**of_source("stable-diffusion", model="./model", vocabulary="./words.yaml"), "count": 4})


def assets(folder: Path) -> None:
    shutil.copy(PROCEDURAL / "manifest.json", "manifest.json")
    recipe(scenes={**of_source("kubric", aspect="location", assets="manifest.json"), "count": 3})


def noise(path: str, seed: int, size: tuple[int, int] = (24, 16)) -> None:
    """A picture of noise, of the format that its name says."""
    Image.frombytes("RGB", size, Random(seed).randbytes(3 * size[0] * size[1])).save(path)


def pairs(form: str, folder: Path) -> None:
    """Three pairs of images of three formats. form: of the annotation."""
    records = []
    for n, suffix in enumerate(("png", "jpg", "webp")):
        names = [f"{n}-{side}.{suffix}" for side in (0, 1)]
        for side, name in enumerate(names):
            noise(name, 2 * n + side)
        records.append(
            {
                "id": f"p{n}",
                "image0": names[0],
                "image1": names[1],
                "caption0": [f"left {n}", "also"],
                "caption1": f"right {n}",
            }
        )
    path = f"pairs.{form}"
    if form == "json":
        Path(path).write_text(json.dumps(records))
    elif form == "jsonl":
        Path(path).write_text("".join(json.dumps(one) + "\n" for one in records))
    else:
        pq.write_table(pa.Table.from_pylist([{**one, "caption0": one["caption0"][0]} for one in records]), path)
    recipe(
        pairs={**of_source("image-pairs", annotations=path, media="."), "encoding": {"format": "png"}, "shard_size": 2}
    )


def clips(folder: Path) -> None:
    """Two short clips, of which YouCook2's rule takes two frames each."""
    database = {}
    for name, suffix in (("one", "mp4"), ("two", "mkv")):
        film(Path(f"{name}.{suffix}"), 2)
        steps = [{"id": n, "segment": [n, n + 0.5], "sentence": f"cut the {n} onion"} for n in range(2)]
        database[name] = {
            "annotations": steps,
            "subset": "training",
            "duration": 2.0,
            "video_url": "",
            "recipe_type": "1",
        }
    Path("annotations.json").write_text(json.dumps({"database": database}))
    recipe(pairs={**of_source("youcook2", annotations="annotations.json", media="."), "filters": [{"kind": "blank"}]})


#: Name, what makes valid ones, acts, patterns of the files that are mutated, weight.
KINDS: tuple[tuple[Any, ...], ...] = (
    ("recipe", recipes, {"plan": PLAN["plan"]}, ["recipe.yaml"], 6),
    ("Action Genome, pickle", action_genome, PLAN, ["*.pkl"], 3),
    ("Action Genome, lines", action_genome_lines, PLAN, ["*.jsonl"]),
    ("GEBC", gebc, PLAN, ["*.json"]),
    ("YouCook2", youcook2, PLAN, ["*.json"]),
    ("VAW and taxonomy", vaw, {"plan": PLAN["plan"]}, ["*.json"], 3),
    ("COCO panoptic", panoptic, {"plan": PLAN["plan"]}, ["*.json"]),
    ("captions", captions, {"plan": plan_each}, ["*.tsv", "*.txt", "*.json*", "*.parquet", "downloaded/*"], 4),
    ("released negatives", released, PLAN, ["*.csv", "*.parquet", "*.json"], 3),
    ("vocabulary", vocabularies, {"plan": PLAN["plan"]}, ["words.yaml"]),
    ("manifest of assets", assets, {"plan": PLAN["plan"]}, ["manifest.json"]),
    *((f"pairs, {form}", partial(pairs, form), PLAN, [f"pairs.{form}"]) for form in ("json", "jsonl", "parquet")),
    ("images", partial(pairs, "json"), BUILD, ["*.png", "*.jpg", "*.webp"], 3),
    ("clips", clips, BUILD, ["*.mp4", "*.mkv"], 3),
)
