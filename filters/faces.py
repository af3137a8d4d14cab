"""Frames that show a face: EqBen (B.3) discards those in which face_recognition finds one."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from twinset.contracts.canonical import sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.samples import Drop, Frame, Keep, Pixels, Verdict
from twinset.contracts.parts import Filter
from twinset.contracts.source import Need

REMEMBERED = 100_000  # frames: a video repeats its own


class Faces(Filter):
    """Drops frames that show a human face (EqBen, B.3), by ``face_recognition.face_locations(pixels, model=model)``.

    model: ``hog`` on the CPU, ``cnn`` on a GPU. Without CUDA in dlib, as in dlib-bin, ``cnn`` works on the CPU, slowly.
    """

    kind: Literal["faces"]
    model: Literal["hog", "cnn"] = "hog"

    version = 2
    libraries = ("face_recognition", "dlib-bin", "dlib")  # the last where it was built with CUDA
    isolation = "process"  # two threads in dlib corrupt the heap
    judges = "frames"
    reasons: ClassVar[Mapping[str, str]] = {"face": "a frame shows a human face"}

    def how_judged(self) -> str:
        return (
            f"A sample is rejected if face_recognition (dlib's detector `{self.model}`) finds a face in a frame of it."
        )

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        if "models" in needs and find_spec("face_recognition") is None:
            raise WrongUse(f"{key}: face_recognition is not installed; pip install 'twinset[faces]'")

    def runs_on(self) -> str | None:
        """Where the neural network runs: a GPU's name or ``cpu``; None for HOG, which is none."""
        if self.model == "hog":
            return None
        import dlib

        if not dlib.DLIB_USE_CUDA:
            return "cpu"
        import torch

        return torch.cuda.get_device_name() if torch.cuda.is_available() else "cuda"

    def weights(self) -> dict[str, str]:
        """The network's file with its sha256; none for HOG, whose weights are compiled into dlib."""
        package = find_spec("face_recognition_models")
        if self.model == "hog" or package is None or package.origin is None:
            return {}
        path = Path(package.origin).parent / "models" / "mmod_human_face_detector.dat"
        return {path.name: sha256_of_file(path)[0]}

    def judge(self, frames: Sequence[Frame]) -> list[Verdict]:
        """Frames with equal pixels are searched once."""
        return [Drop("face") if self._shows_face(frame.pixels) else Keep() for frame in frames]

    def _shows_face(self, pixels: Pixels) -> bool:
        with warnings.catch_warnings():  # of a package that it needs, on setuptools
            warnings.simplefilter("ignore")
            import face_recognition

        pixels = np.ascontiguousarray(pixels)
        digest = hashlib.sha256(repr(pixels.shape).encode() + pixels.tobytes()).digest()
        if digest not in self._verdicts:
            if len(self._verdicts) >= REMEMBERED:
                self._verdicts.clear()
            self._verdicts[digest] = bool(face_recognition.face_locations(pixels, model=self.model))
        return self._verdicts[digest]

    @cached_property
    def _verdicts(self) -> dict[bytes, bool]:
        return {}
