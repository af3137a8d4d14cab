"""The proof by pixels that an edit changed one place and nothing else."""

from collections.abc import Mapping

import numpy as np

from twinset.contracts.kinds.samples import Pixels
from twinset.shards.media.comparison import RADIUS, UNKNOWN, Bools, differences, grown, likeness, shifts
from twinset_extras.edited_photos.source import Bounds

#: Pixels around a mask that its change reaches by the codec's blocks of 8 and the window of structural similarity.
REACH = 16


def figures(before: Pixels, raw: Pixels, after: Pixels, mask: Bools) -> dict[str, float]:
    """What `EditedPhotos.scored` explains. raw: as the editor gave it; after: with what was pasted."""
    outside = ~grown(mask, REACH)
    moved = shifts(before, raw, outside)
    alike = likeness(before, after, outside)
    return {
        "place": round(float(mask.mean()), 4),
        "shift": round(float(np.quantile(np.nan_to_num(moved, nan=RADIUS), 0.9)), 1) if len(moved) else UNKNOWN,
        "ssim_outside": alike.ssim,
        "difference_outside": alike.difference,
        "worst_outside": alike.worst,
        "difference_inside": round(float(differences(before, after)[mask].mean()), 3),
    }


def against(scores: Mapping[str, float], bounds: Bounds) -> str:
    """The reason why an edit is not proved; empty where it is."""
    if scores["difference_outside"] == UNKNOWN:
        return "place-too-large"
    if scores["shift"] > bounds.shift:
        return "moved"
    alike = scores["ssim_outside"] >= bounds.ssim and scores["difference_outside"] <= bounds.difference
    if not alike or scores["worst_outside"] > bounds.worst:
        return "changed-outside"
    return "hardly-changed" if scores["difference_inside"] < bounds.changed else ""
