"""The editor ``simple`` at work."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

import cv2
import numpy as np

from twinset.contracts.kinds.samples import Pixels, Rejected
from twinset.models.image_editor import Edit, ImageEditor
from twinset.models.image_engine import Drawn

#: Hue in degrees of CIE Lab, and the lightness (0-100) at which it is called by its name.
COLOURS = {
    "red": (35, (25, 62)),
    "orange": (65, (50, 80)),
    "yellow": (95, (68, 97)),
    "green": (140, (25, 85)),
    "blue": (285, (15, 75)),
    "purple": (315, (15, 62)),
}
NEAR = 35  # degrees from a hue that still count as it
COLOURED = 15  # chroma from which a pixel has a hue
THICKEST = 0.1  # of the longer side, from border to middle: of thicker holes a reader sees a smear, not an absence
LEAST = 0.25  # share of the mask that must have the hue


class SimpleEditor(ImageEditor):
    """Ten lines an edit."""

    version = 1
    libraries = ("numpy", "opencv-python")
    micro_batch = 8

    def edit(self, edits: Sequence[Edit]) -> Iterator[Drawn | Rejected]:
        for one in edits:
            done = self._recoloured(one) if one.phrase else self._removed(one)
            yield Rejected(one.key, *done) if isinstance(done, tuple) else Drawn(one.key, done, {"editor": "simple"})

    def _removed(self, one: Edit) -> Pixels | tuple[str, str]:
        hole = cast(Pixels, one.mask).astype(np.uint8)
        if (thick := float(cv2.distanceTransform(hole, cv2.DIST_L2, 5).max())) > THICKEST * max(hole.shape):
            return "hole-too-thick", f"{thick:.0f} pixels from its border to its middle"
        return np.asarray(cv2.inpaint(one.pixels, hole, 5, cv2.INPAINT_TELEA), np.uint8)

    def _recoloured(self, one: Edit) -> Pixels | tuple[str, str]:
        """Pixels of the old hue take the new one, with their lightness and distance from grey."""
        words, old = one.phrase.split(), set(one.caption.lower().replace(".", "").split())
        new = next((word for word in words if word in COLOURS and word not in old), "")
        was = [word for word in old if word in COLOURS and word not in one.wanted.lower()]
        if not new or len(was) != 1:
            return "cannot-paint", one.instruction
        lab = cv2.cvtColor(one.pixels.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
        light, hue = lab[..., 0], np.degrees(np.arctan2(lab[..., 2], lab[..., 1]))
        chroma = np.hypot(lab[..., 1], lab[..., 2])
        turned = (hue - COLOURS[was[0]][0] + 180) % 360 - 180
        mask = cast(Pixels, one.mask) & (chroma > COLOURED) & (abs(turned) < NEAR)
        if mask.sum() < LEAST * cast(Pixels, one.mask).sum():
            return "no-colour", f"{mask.sum() / cast(Pixels, one.mask).sum():.2f} of the place is {was[0]}"
        goal, (dark, bright) = COLOURS[new]
        if not dark <= (mean := float(light[mask].mean())) <= bright:
            return "wrong-lightness", f"lightness {mean:.0f}; {new} has {dark} to {bright}"
        turn = np.radians(goal + turned[mask] / 2)  # half of the spread, so that a shade stays within the name
        lab[mask, 1], lab[mask, 2] = chroma[mask] * np.cos(turn), chroma[mask] * np.sin(turn)
        painted = np.clip(np.round(cv2.cvtColor(lab, cv2.COLOR_LAB2RGB) * 255), 0, 255).astype(np.uint8)
        return np.where(mask[..., None], painted, one.pixels)
