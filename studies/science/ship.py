"""Makes the small CLIP that ships: weights of a base or an arm in half precision, in open_clip's layout."""

import shutil
from pathlib import Path

from studies.science.findings import SHOWN
from studies.science.markdown import table
from studies.science.outcomes import percent, read_right
from studies.science.runs import BASE, Run, Study
from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.models.encoders.open_clip_files import CONFIG, FILES
from twinset.shards.storage.whole_file import whole_file, write_text

LARGEST = 10_000_000  # bytes of what ships


def ship(study: Study, run: Run, folder: Path) -> None:
    """Write the CLIP of a base or an arm, with its configuration and card, into a folder."""
    import torch
    from safetensors.torch import load_file, save_file

    config, weights = (Path(place) for place in study.weights(run).split(":"))
    # Half precision: its error is far below the differences of scores, and the vocabulary alone is 12 MB otherwise.
    halved = {
        name: value.to(torch.float16) if value.is_floating_point() else value
        for name, value in sorted(load_file(weights).items())
    }
    with whole_file(folder / FILES[0]) as temporary:
        save_file(halved, temporary)
    with whole_file(folder / CONFIG) as temporary:
        shutil.copyfile(config, temporary)
    write_text(folder / "README.md", card(study, run, sha256_of_file(folder / FILES[0])[0]))


def card(study: Study, run: Run, sha256: str) -> str:
    """The card: what it is, how it was made and from what, what it scores, and what it is not for.

    Args:
        sha256: of the weights that ship.
    """
    design, done = study.design, study.done(run)
    if done is None:
        raise WrongUse(f"{study.folder(run)}: not finished; run `python -m studies.science` on")
    base = run.arm == BASE
    settings = design.settings(None if base else run.arm)
    figures = SHOWN["pairs"]
    scores = []
    for test in study.wanted(run):
        right = read_right(study.scores(run, test), figures)
        scores.append([design.tests[test].title, *(f"{percent(right, figure):.1f}" for figure in figures)])
    subsets = dict.fromkeys([*design.base["data"], *settings["data"]])
    trained = "" if base else f" Its base was trained for {design.base['steps']} steps of {design.base['batch']} first."
    command = "--gate-only --ship" if base else "--ship"
    what = "the base" if base else f"arm `{run.arm}` ({design.arms[run.arm].title})"
    chosen = "no arm was trained on it" if base else "the best of the arms"
    parts = [
        "# small-clip",
        "A CLIP for trying things out: it knows painted scenes of two or three things in six colours, nothing else. "
        "`twinset eval run --model small-clip` opens it, and `twinset eval demo` scores it.",
        f"It is {what} of seed {run.seed} of `python -m studies.science`, {chosen}, in float16.",
        f"    python -m studies.science --out out/science {command} demo/twinset_demo/small_clip      # makes it again",
        "## Scores\n\nBefore rounding to float16; percent.",
        table(["test set", *figures], scores),
        "## Made from",
        table(["subset of recipe `science`", "sha256 over its shards"], [[o, study.data_digests[o]] for o in subsets]),
        f"{settings['steps']} steps of {settings['batch']}, objective {settings.get('objective', 'infonce')}, "
        f"learning rate {settings['lr']:g}.{trained} Weights before rounding: sha256 "
        f"`{done.weights}`; after it: `{sha256}`.",
        "## Limits\n\nFlat shapes on pale grounds, 48 pixels, captions of up to 26 tokens. What was asked of it is in "
        "`studies/science/README.md`. Of anything else its scores mean nothing.",
        "Licence: CC0-1.0, as the scenes, which twinset paints.",
    ]
    return "\n\n".join(parts) + "\n"
