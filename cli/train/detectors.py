"""``twinset train detectors``: BiVLC's detectors of natural and synthetic captions and images."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from pathlib import Path
from typing import Any

from cli.options import between, share, whole_number
from manifests.errors import WrongUse

MOST_BATCH = 65_536
MOST_EPOCHS = 10_000


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset train``."""
    text = "train detectors of natural and synthetic captions and images on the features of a frozen model (BiVLC)"
    training = commands.add_parser("detectors", help=text, description=text)
    training.set_defaults(run=run)
    training.add_argument(
        "--data",
        action="append",
        required=True,
        metavar="DIR[:SUBSET]",
        help="what twinset built: pairs of which the second half is synthetic, or text pairs; may be repeated",
    )
    training.add_argument("--out", required=True, type=Path, metavar="OUT", help="folder of the detectors")
    training.add_argument(
        "--model",
        metavar="KIND:NAME[:CHECKPOINT]",
        help="a dual encoder, as `twinset eval run` names it (default: open_clip:ViT-B-32:openai)",
    )
    training.add_argument(
        "--held-out",
        type=share,
        metavar="SHARE",
        help="share of the groups that choose the epoch, and of those that test the detectors (default: 0.1 each)",
    )
    training.add_argument(
        "--rate", type=float, metavar="X", help="learning rate (default: 1e-3, as released; the paper has 1e-6)"
    )
    for half, usual in (("text", 10), ("image", 1)):
        training.add_argument(
            f"--{half}-epochs", type=between(1, MOST_EPOCHS), metavar="N", help=f"of the {half}s (default: {usual})"
        )
    training.add_argument("--seed", type=whole_number, metavar="N", help="of groups, weights and order (default: 42)")
    training.add_argument("--device", choices=("cpu", "gpu"), help="what runs --model (default: cpu)")
    training.add_argument("--threads", type=whole_number, metavar="N", help="threads of torch (default: one a core)")
    training.add_argument(
        "--encode-batch", type=between(1, MOST_BATCH), metavar="N", help="images or texts in one pass (default: 32)"
    )
    training.add_argument(
        "--cache", type=Path, metavar="DIR", help="folder of what was encoded (default: ~/.cache/twinset/features)"
    )
    training.add_argument("--json", action="store_true", help="print one JSON object on stdout")


def run(asked: argparse.Namespace) -> None:
    """``twinset train detectors``."""
    from pydantic import ValidationError

    from training.detectors.settings import DetectorSettings
    from training.detectors.train import train_detectors

    given = {name: getattr(asked, name) for name in DetectorSettings.model_fields}
    try:
        settings = DetectorSettings.model_validate({name: one for name, one in given.items() if one is not None})
    except ValidationError as error:
        problems = (f"--{one['loc'][0]}: {one['msg']}".replace("_", "-") for one in error.errors())
        raise WrongUse("; ".join(problems)) from error
    with contextlib.redirect_stdout(sys.stderr):
        trained = train_detectors(settings, asked.out, asked.cache)
    if asked.json:
        print(json.dumps({"out": str(trained.folder), **trained.detectors.facts}))
        return
    for half, facts in trained.detectors.facts["halves"].items():
        pairs = ", ".join(f"{facts[f'{part}_pairs']:,} {part}" for part in ("train", "validation", "test"))
        correct = f"{100 * facts['test_accuracy']:.2f} % of held-out halves are classified correctly"
        print(f"{half}: {correct} (pairs: {pairs})")
    print(trained.folder)
