"""Every filter that a recipe can name: its settings open it, and explain what it drops samples for."""

import subprocess
import sys

import pytest

from twinset.contracts.parts import CaptionFilter, Filter, FrameFilter, PairFilter
from twinset.contracts.source import FILTERS, SOURCES

NEEDED = {kind: {"model": "somebody/clip"} for kind in ("directional-similarity", "true-of-both")}
KINDS = {"captions": CaptionFilter, "frames": FrameFilter, "pairs": PairFilter}


@pytest.mark.parametrize("kind", FILTERS.kinds())
def test_settings_open_a_filter_of_what_they_judge(kind: str) -> None:
    settings = FILTERS.find(kind).model_validate({"kind": kind, **NEEDED.get(kind, {})})
    assert isinstance(settings, Filter) and (settings.reasons or kind == "directional-similarity")  # it drops nothing
    opened = settings.open()
    assert isinstance(opened, KINDS[settings.judges])
    assert opened.version >= 1 and opened.isolation in ("thread", "process")


def test_looking_up_settings_imports_nothing_heavy() -> None:
    """A recipe is checked, and status is shown, in a second."""
    heavy = ("torch", "av", "cv2", "bpy", "spacy", "diffusers", "dlib", "trimesh", "inflect")
    code = (
        "import sys; from twinset.contracts.source import FILTERS, SOURCES\n"
        "for registry in (FILTERS, SOURCES):\n"
        "    for kind in registry.kinds(): registry.find(kind)\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    assert SOURCES.kinds()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
