"""The small world: what a picture can show, how captions say it, and which captions training never sees."""

import hashlib
from dataclasses import dataclass, replace
from functools import cache
from itertools import product

import numpy as np

#: Colours of objects, sRGB. Grounds and skies keep clear of them, so that a reader of pictures can tell them apart.
COLOURS: dict[str, tuple[int, int, int]] = {
    "red": (214, 40, 40),
    "blue": (40, 70, 220),
    "yellow": (250, 215, 30),
    "green": (25, 120, 55),
    "purple": (135, 45, 170),
    "black": (25, 25, 25),
}
#: Singular and plural.
OBJECTS: dict[str, str] = {
    "ball": "balls",
    "box": "boxes",
    "star": "stars",
    "heart": "hearts",
    "house": "houses",
    "tree": "trees",
    "fish": "fish",
    "car": "cars",
}
STYLES = ("photo", "painting")
COUNTS = ("a", "two", "three", "four")
SIZES = ("", "small", "large")
POSITIONS = ("", "on the left", "on the right", "at the top", "at the bottom")
PLACES = ("", "on the grass", "in the desert", "in the snow")
TIMES = ("", "at sunset", "at night")

HELD_OUT = 20  # one caption in twenty


@dataclass(frozen=True, slots=True)
class Scene:
    """What a caption says; "" is what it leaves open.

    Without a colour it is any, without a size medium, without a position in the middle, without a place before a grey
    wall (then it has no time either), without a time by day. Several objects are of one kind and colour, and have
    neither size nor position.
    """

    style: str = "photo"
    count: str = "a"
    size: str = ""
    colour: str = "red"
    object: str = "ball"
    position: str = ""
    place: str = ""
    time: str = ""

    @property
    def number(self) -> int:
        """How many objects."""
        return COUNTS.index(self.count) + 1

    def caption(self) -> str:
        """As in "a photo of a small red star on the left in the desert at night"."""
        noun = OBJECTS[self.object] if self.number > 1 else self.object
        said = (self.style, "of", self.count, self.size, self.colour, noun, self.position, self.place, self.time)
        return " ".join(("a", *filter(None, said)))


def normalised(scene: Scene) -> Scene:
    """The scene without impossible words: size or position of several objects, a large one at a side, time indoors."""
    if scene.number > 1:
        scene = replace(scene, size="", position="")
    if scene.size == "large":
        scene = replace(scene, position="")
    return scene if scene.place else replace(scene, time="")


def sample_scene(rng: np.random.Generator) -> Scene:
    """A random scene; several objects, words left out, places and times are all frequent enough to be learned."""

    def one(words: tuple[str, ...], weights: tuple[float, ...] | None = None) -> str:
        return str(rng.choice(words, p=weights))

    return normalised(
        Scene(
            style=one(STYLES),
            count=one(COUNTS, (0.46, 0.18, 0.18, 0.18)),
            size=one(SIZES, (0.5, 0.25, 0.25)),
            colour=one(("", *COLOURS), (0.1, *(0.15,) * len(COLOURS))),
            object=one(tuple(OBJECTS)),
            position=one(POSITIONS, (0.3, 0.175, 0.175, 0.175, 0.175)),
            place=one(PLACES, (0.25, 0.25, 0.25, 0.25)),
            time=one(TIMES),
        )
    )


@cache
def _sayable() -> dict[str, Scene]:
    """Every scene that has a caption, possible or not, by its caption."""
    words = (STYLES, COUNTS, SIZES, ("", *COLOURS), tuple(OBJECTS), POSITIONS, PLACES, TIMES)
    return {scene.caption(): scene for scene in (Scene(*chosen) for chosen in product(*words))}


def every_caption() -> set[str]:
    """Captions of all scenes that `sample_scene` can return."""
    return {caption for caption, scene in _sayable().items() if normalised(scene) == scene}


def is_held_out(caption: str) -> bool:
    """Whether a caption is kept out of training, so that measuring uses combinations that were never seen."""
    digest = hashlib.blake2b(caption.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") % HELD_OUT == 0


def read_caption(caption: str) -> Scene:
    """The scene of a caption; capitals and a full stop are allowed.

    Raises:
        ValueError: The caption is not of this grammar.
    """
    text = caption.strip().rstrip(".").lower()
    if not text.startswith("a "):
        raise ValueError(f"{caption!r}: captions of the small world begin with 'a photo of' or 'a painting of'")
    if text not in _sayable():
        raise ValueError(f"{caption!r}: not a caption of the small world")
    return _sayable()[text]
