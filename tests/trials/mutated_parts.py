"""Kinds of what single parts read: pipelines, ratings, assets, paid answers, models; and a training's inputs."""

from __future__ import annotations

import json
import shutil
from functools import partial
from pathlib import Path

from tests.trials.mutated_data import PLAN, Act, Kind, command, copied, of_source, recipe
from twinset.cli.main import main
from twinset.contracts.errors import WrongUse


def pipeline(folder: Path) -> None:
    from twinset.models.spacy_pipelines import find_pipeline

    shutil.copytree(find_pipeline().source, folder / "pipeline")


def load_pipeline(folder: Path) -> None:
    from twinset.models import spacy_pipelines

    spacy_pipelines.load_pipeline.cache_clear()
    spacy_pipelines.load_pipeline(spacy_pipelines.find_pipeline(str(folder / "pipeline")))


def ratings(folder: Path) -> None:
    copied("stills/captions.json", "stills/concreteness.txt")
    graphs = {**of_source("scene-graphs", captions=["captions.json"]), "below": True, "shard_size": 999}
    recipe(graphs=graphs)
    assert main(("build", "recipe.yaml", "--out", "graphs", "--workers", "1")) == 0
    source = of_source("genecis-triplets", graphs="graphs", concreteness="concreteness.txt")
    recipe(graphs=graphs, triplets={**source, "count": 6, "split": "train"})


def archives(folder: Path) -> None:
    """An archive of assets in the layout of Google Scanned Objects, and its files, which are mutated too."""
    from tests.generators.kubric_scenes.tiny_assets import files

    (folder / "box").mkdir()
    for name, content in files("box").items():
        (folder / "box" / name).write_bytes(content)
    pack_again(folder)


def pack_again(folder: Path) -> None:
    from tests.generators.kubric_scenes.tiny_assets import pack

    pack(folder / "box.tar.gz", {path.name: path.read_bytes() for path in (folder / "box").iterdir() if path.is_file()})


def unpack(folder: Path) -> None:
    """Unpack an archive and read its meshes, as `generators.kubric_scenes.assets` does."""
    from twinset.generators.kubric_scenes.assets import unpack as unpacked

    try:
        unpacked(folder / "box.tar.gz", folder / "unpacked")
    except ValueError as error:  # what its caller takes
        raise WrongUse(str(error)) from error


def unpack_files(folder: Path) -> None:
    """The same, of files that were mutated within the archive."""
    pack_again(folder)
    unpack(folder)


def paid(folder: Path) -> None:
    from twinset.models.language_models.answers import Answer, Answers

    kept = Answers(folder / "answers")
    for number in range(4):
        kept.keep(f"{number:032x}", "m", Answer(json.dumps({"caption": f"a cup {number}"}), "stop", 10, number))


def find_paid(folder: Path) -> None:
    from twinset.models.language_models.answers import Answer, Answers

    kept = Answers(folder / "answers")
    for answer in kept.find([f"{number:032x}" for number in range(4)]).values():
        if not (isinstance(answer.text, str) and isinstance(answer.prompt_tokens, int)):
            raise TypeError(f"an answer of other types: {answer}")
    kept.spent("m")
    kept.keep("f" * 32, "m", Answer("{}", "stop", 1, 1))


CONFIGS = ["model/**/*.json", "model/**/*.txt", "model/**/*.jinja", "model/**/*.safetensors", "model/**/*.bin"]
#: Names in `tests.models.model_kinds.KINDS`: each is saved by the tests, and opened as recipes and commands do.
OPENED = (
    *("filter of pairs, CLIP", "vera", "cola", "evaluation, open_clip", "evaluation, clip"),
    *("evaluation, siglip", "evaluation, blip-itm", "evaluation, vilt", "evaluation, flava", "evaluation, combiner"),
    *("questions, blip", "questions, vilt", "writer", "diffusion, unet"),
)


def save(name: str, folder: Path) -> None:
    from tests.models.model_kinds import KINDS

    KINDS[name].save(folder / "model")
    shutil.rmtree(folder / "made", ignore_errors=True)


def open_it(name: str, folder: Path) -> None:
    from tests.models.model_kinds import KINDS

    KINDS[name].open(folder / "model")


def trained(folder: Path) -> None:
    """Twins and their export, a configuration of a tiny model, and a run that stopped after two of its four steps."""
    from tests.made_datasets import _pairs
    from tests.tiny_encoders import open_clip_config
    from tests.trials.mutated_outs import made

    made(_pairs, folder)
    open_clip_config(Path("model"))
    assert main(("export", "out", "--format", "openclip", "--out", "export", "--only", "eq-ag")) == 0
    assert train("out:eq-ag", "run")(folder) == 0
    for path in (Path("run/result.json"), *Path("run").glob("*.safetensors")):
        path.unlink()


def train(data: str, out: str) -> Act:
    return command(
        *("train", "clip", "--data", data, "--out", out, "--model", "model/tiny.json", "--weights", "random"),
        *("--batch", "4", "--steps", "2", "--warmup", "1", "--threads", "1", "--checkpoint-every", "1"),
    )


TRAINING: dict[str, Act] = {
    "train": train("out:eq-ag", "new"),
    "train on an export": train("tars:export", "new"),
    "resume": train("out:eq-ag", "run"),
}
KINDS = (
    Kind("pipeline of spaCy", pipeline, {"load": load_pipeline}, ["pipeline/**/*"]),
    Kind("ratings of words", ratings, {"plan --out": PLAN["plan --out"]}, ["concreteness.txt"], 1),
    Kind("assets", archives, {"unpack": unpack}, ["box.tar.gz"], 1),
    Kind("files of assets", archives, {"unpack": unpack_files}, ["box/*"]),
    Kind("answers that were paid for", paid, {"find": find_paid}, ["answers/*.sqlite"]),
    *(Kind(f"model: {name}", partial(save, name), {"open": partial(open_it, name)}, CONFIGS) for name in OPENED),
    Kind("training", trained, TRAINING, ["out/eq-ag/**/*", "export/*", "model/*.json", "run/**/*"], 4),
)
