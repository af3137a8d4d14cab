"""Makes the small CLIP that ships: the best arm's weights in half precision, in open_clip's layout, with a card."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from evaluation.scorers.open_clip_files import CONFIG, FILES
from manifests.canonical import sha256_of_file
from shards.storage.whole_file import whole_file, write_text
from training.science.findings import Findings, best_arm
from training.science.report import table
from training.science.runs import Run

LARGEST = 10_000_000  # bytes of what ships


def ship(found: Findings, folder: Path) -> Run:
    """Write the best arm's CLIP with its configuration and card into a folder; returns the run that trained it."""
    import torch
    from safetensors.torch import load_file, save_file

    run = best_arm(found)
    config, weights = (Path(place) for place in found.study.weights(run).split(":"))
    # Half precision: its error is far below the differences of scores, and the vocabulary alone is 12 MB otherwise.
    halved = {
        name: value.to(torch.float16) if value.is_floating_point() else value
        for name, value in sorted(load_file(weights).items())
    }
    with whole_file(folder / FILES[0]) as temporary:
        save_file(halved, temporary)
    with whole_file(folder / CONFIG) as temporary:
        shutil.copyfile(config, temporary)
    write_text(folder / "README.md", card(found, run, sha256_of_file(folder / FILES[0])[0]))
    return run


def card(found: Findings, run: Run, sha256: str) -> str:
    """The card: what it is, how it was made and from what, what it scores, and what it is not for."""
    study, design = found.study, found.study.design
    done = study.trained(run)
    arm, settings = design.arms[run.arm], design.clip_settings(run.arm)
    place = design.seeds.index(run.seed)
    scores = [
        [design.tests[one.test].title, *(f"{values[place]:.1f}" for values in one.figures.values())]
        for one in found.scores
        if one.arm == run.arm
    ]
    read = [*design.base["data"], *settings["data"]]
    data = [[subset, study.data_digests[subset]] for subset in dict.fromkeys(read)]
    mean = np.mean([one.figures["group"] for one in found.scores if one.arm == run.arm])
    parts = [
        "# small-clip",
        "A CLIP for trying things out: it knows painted scenes of two or three things in six colours, nothing else. "
        "`twinset eval run --model small-clip` opens it, and `twinset eval demo` scores it.",
        f"It is arm `{run.arm}` ({arm.title}) of seed {run.seed} of `twinset science`, the best of its arms (group "
        f"score of {mean:.0f} % over seeds and test sets), in float16.",
        "    twinset science --out out/science --ship evaluation/small_clip      # makes it again",
        "## Scores\n\nOf this seed, before rounding to float16; percent.",
        table(["test set", "text", "image", "group"], scores),
        "## Made from",
        table(["subset of recipe `science`", "sha256 over its shards"], data),
        f"Design `{design.digest}`; weights before rounding sha256 `{done.weights if done else ''}`, "
        f"after it `{sha256}`.\n\n"
        f"The base was trained for {design.base['steps']} steps of {design.base['batch']}, then the arm for "
        f"{settings['steps']} of {settings['batch']}, objective {settings['objective']}.",
        "## Limits\n\nFlat shapes on pale grounds, 48 pixels, captions of up to 26 tokens. What it scores by kind of "
        "change is in docs/science.md. Of anything else its scores mean nothing.",
        "Licence: CC0-1.0, as the scenes, which twinset paints.",
    ]
    return "\n\n".join(parts) + "\n"
