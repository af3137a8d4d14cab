"""What a card says of a kind of source in words, besides what is counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from manifests.locations import SMALL

# How pairs are made, from what, and what a group of them is called.
_WORDING = {"kubric": ("rendered", "with", "scene"), "stable-diffusion": ("drawn", "with", "drawing")}

_RENDERED = """* Few things on a bare floor or before a background picture: no clutter, no people, nothing cut
  off or much hidden.
* Left, right, in front and behind are the viewer's, whichever way a thing faces.
* Wordings of one meaning ("is", "is placed"; "in the scene", "on the platform") are drawn for each caption by itself:
  the captions of a pair may differ in words that change nothing.
* A pair was kept because its renders, not only its plan, show what its captions say: `provenance` in each sample's JSON
  holds boxes, visible shares and poses of all things.
"""

_DRAWN = """* Nothing has checked that the pictures show what their captions say: rejected is only what is plainly
  broken (of one colour, not a number, two equal pictures). EqBen's own EQ-SD was screened by people, who kept 1,513
  pairs.
* No limit on a text-image similarity was used: it would favour what one model of the kind that is tested takes for
  right. Where the filter `directional-similarity` is on, it scores (`direction` in `scores`) and rejects nothing.
* `scores` in each sample's JSON are for people who screen: `region` is the share of the picture that has the
  model's attention for the words of the edited thing (1: an edit of the whole picture), `similarity_inside` and
  `similarity_outside` tell how alike the two pictures are within and without it (1: equal).
* One image of a pair (`plain` in `provenance`) was drawn from its caption alone, the other one under its attention,
  from the same noise. Which of the two it is changes from pair to pair.
* Some pairs are with and without {phrase}: the shorter caption is silent about it, and holds of both.
* Captions come from a few templates, and come again with another noise when there are more pairs than wordings.
"""

#: What a caption of a vocabulary can leave out.
_PHRASES = {"figure-15": "a scene or a thing to wear", "small-world": "a place or an hour"}

_SMALL = """\
* The model is twinset's own small one, which knows one drawn world: flat shapes of one colour before a plain ground,
  no texture, no people. A painting is a picture with a frame around it, nothing else. These pairs are for trying the
  tool; scores on them say little about photographs.
"""


def wording(kind: str) -> tuple[str, str, str]:
    """How pairs of a kind of source are made, as in "rendered", "with" a source, and what a group of them is."""
    return _WORDING.get(kind, ("made", "from", "video"))


def notes(source: Mapping[str, Any]) -> str:
    """A Markdown list of what no count tells of pairs of a source with these settings; empty for found ones."""
    if source["kind"] == "kubric":
        return _RENDERED
    if source["kind"] != "stable-diffusion":
        return ""
    about_model = _SMALL if source.get("model") == SMALL else ""
    return about_model + _DRAWN.format(phrase=_PHRASES[source["vocabulary"]])
