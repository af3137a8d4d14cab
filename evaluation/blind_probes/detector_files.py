"""Trained detectors of natural and synthetic halves as files, which ``train detectors`` writes."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from twinset.evaluation.blind_probes.detectors import Detector
from twinset.manifests.canonical import sha256_of_file
from twinset.manifests.errors import WrongUse
from twinset.models.encoders.checkpoints import read_weights
from twinset.models.loading import saving
from twinset.shards.storage.whole_file import whole_file, write_text

FACTS = "detectors.json"
HALVES = ("text", "image")
NAMES = frozenset({"weight", "bias"})  # of the layer, as `torch.nn.Linear` has them
_AGAIN = "write it again with `twinset train detectors`"


@dataclass(frozen=True)
class Detectors:
    """Detectors of one encoder.

    image: None where they were trained on captions alone.
    facts: ``model`` and ``encoder``, the name and the digest of the encoder whose features they read, and how they were
        trained and tested.
    """

    text: Detector
    image: Detector | None
    facts: Mapping[str, Any]

    @property
    def trained_on(self) -> str:
        """Their data, for messages."""
        return ", ".join(self.facts["data"])

    def check_encoder(self, model: str, encoder: str) -> None:
        """Raise `WrongUse` where features come from another encoder than the detectors were trained on.

        Args:
            model: name of the other. encoder: its `models.encoders.contract.Scorer.digest`.
        """
        if self.facts["encoder"] != encoder:
            raise WrongUse(
                f"--model {model}: the detectors were trained on features of {self.facts['model']}, whose digest is "
                f"{self.facts['encoder'][:12]} and not {encoder[:12]}; name that model, or train detectors for this one"
            )


def write_detectors(found: Detectors, out: Path) -> dict[str, str]:
    """Write ``text_detector.safetensors``, ``image_detector.safetensors`` if there is one, and `FACTS` last.

    Returns:
        The sha256 of each file of weights, by name; `FACTS` has them too.
    """
    from safetensors.numpy import save_file

    written = dict[str, str]()
    for half, detector in zip(HALVES, (found.text, found.image), strict=True):
        path = out / f"{half}_detector.safetensors"
        if detector is None:
            path.unlink(missing_ok=True)
            continue
        with whole_file(path) as temporary, saving(path):
            save_file({"weight": detector.weight[None], "bias": np.array([detector.bias], np.float32)}, temporary)
        written[path.name] = sha256_of_file(path)[0]
    write_text(out / FACTS, json.dumps({**found.facts, "sha256": written}, indent=1, sort_keys=True) + "\n")
    return written


def read_detectors(folder: Path) -> Detectors:
    """The detectors of a folder that `write_detectors` wrote.

    Raises:
        WrongUse: there are none, or a file is damaged.
    """
    path = folder / FACTS
    try:
        facts = json.loads(path.read_text("utf-8"))
        halves, data = facts["halves"].keys(), [str(one) for one in facts["data"]]
        written = {
            f"{half}_detector.safetensors": str(facts["sha256"][f"{half}_detector.safetensors"]) for half in halves
        }
        named = (
            bool(data) and "text" in halves and isinstance(facts["model"], str) and isinstance(facts["encoder"], str)
        )
    except FileNotFoundError as error:
        raise WrongUse(f"{path}: absent, so that {folder} holds no detectors; {_AGAIN}") from error
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WrongUse(f"{path}: damaged ({error}); {_AGAIN}") from error
    if not named:
        raise WrongUse(f"{path}: does not say which encoder its detectors belong to; {_AGAIN}")
    text, image = (folder / f"{half}_detector.safetensors" for half in HALVES)
    for name, sha256 in written.items():
        if not (folder / name).is_file() or sha256_of_file(folder / name)[0] != sha256:
            raise WrongUse(f"{folder / name}: absent, or not what {path} names; {_AGAIN}")
    return Detectors(_read(text), _read(image) if "image" in halves else None, facts)


def _read(path: Path) -> Detector:
    weights = {name: value.float().numpy() for name, value in read_weights(path).items()}
    if weights.keys() != NAMES or weights["weight"].shape[:1] != (1,) or weights["weight"].ndim != 2:
        shapes = {name: value.shape for name, value in weights.items()}
        raise WrongUse(f"{path}: not a detector, which is a layer with one output, but {shapes}; {_AGAIN}")
    if weights["bias"].shape != (1,) or not all(np.isfinite(value).all() for value in weights.values()):
        raise WrongUse(f"{path}: its bias is not one number, or it holds NaN; {_AGAIN}")
    return Detector(weights["weight"][0], float(weights["bias"][0]))
