"""What is kept: one module a reason to reject."""

from __future__ import annotations

from manifests import filter_settings as settings
from shards.contracts import CaptionFilter, FrameFilter, PairFilter

AnyFilter = CaptionFilter | FrameFilter | PairFilter


def create(chosen: settings.Filter) -> AnyFilter:
    """The filter that a recipe's settings describe; its module loads here, when it is needed."""
    match chosen:
        case settings.MotionWords():
            from filters.motion_words import MotionWordsFilter

            return MotionWordsFilter(chosen)
        case settings.EqualCaptions():
            from filters.equal_captions import EqualCaptionsFilter

            return EqualCaptionsFilter()
        case settings.Faces():
            from filters.faces import FacesFilter

            return FacesFilter(chosen)
        case settings.NearIdentical():
            from filters.near_identical import NearIdenticalFilter

            return NearIdenticalFilter(chosen)
        case settings.Blank():
            from filters.blank import BlankFilter

            return BlankFilter(chosen)
        case settings.SceneCut():
            from filters.scene_cut import SceneCutFilter

            return SceneCutFilter(chosen)
        case settings.DirectionalSimilarity():
            from filters.directional_similarity import DirectionalSimilarityFilter

            return DirectionalSimilarityFilter(chosen)
