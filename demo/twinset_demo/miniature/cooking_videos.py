"""Five little cooking videos and their segments, in YouCook2's own format."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

from twinset.contracts.kinds.samples import Pixels
from twinset_demo.canvas import Canvas, Colour, Point
from twinset_demo.miniature import cooking_steps as cook
from twinset_demo.miniature import kitchen
from twinset_demo.miniature.cooking_steps import Layer, layers
from twinset_demo.miniature.film import Film
from twinset_demo.miniature.kitchen import MIDDLE

STEP_SECONDS, PAUSE = 1.5, 0.3

Steps = Sequence[tuple[str, Layer | None]]  # what is said and done; None shows the presenter's face


@dataclass(frozen=True)
class Cooking:
    """A recipe as it is cooked: its number, part of the data set, the counter's colour and its grain's seed."""

    number: int
    part: str
    top: Colour
    seed: int
    steps: Steps

    @cached_property
    def counter(self) -> Canvas:
        """The empty counter."""
        return kitchen.paint_counter(self.top, self.seed)

    @cached_property
    def segments(self) -> list[tuple[float, float]]:
        """Start and end of every step, in seconds."""
        starts = [round(PAUSE + n * (STEP_SECONDS + PAUSE), 3) for n in range(len(self.steps))]
        return [(start, round(start + STEP_SECONDS, 3)) for start in starts]

    @property
    def seconds(self) -> float:
        """Length of the video."""
        return round(self.segments[-1][1] + PAUSE, 3)

    def picture(self, seconds: float) -> Pixels:
        """(240, 320, 3) RGB picture of one moment; between two steps the cut lies half way."""
        number = min(len(self.steps) - 1, int(max(0.0, seconds - PAUSE / 2) / (STEP_SECONDS + PAUSE)))
        start, end = self.segments[number]
        canvas, step = self.counter.copy(), self.steps[number][1]
        if step is None:
            cook.present(canvas, seconds)
        else:
            step(canvas, min(1.0, max(0.0, (seconds - start) / (end - start))))
        return canvas.pixels()


def database_entry(name: str, cooking: Cooking) -> dict[str, Any]:
    """One video of ``{"database": {VIDEO: …}}``."""
    said = enumerate(zip(cooking.segments, cooking.steps, strict=True))
    return {
        "duration": cooking.seconds,
        "subset": cooking.part,
        "recipe_type": str(cooking.number),
        "video_url": f"miniature:youcook2/videos/{name}",
        "annotations": [
            {"segment": list(segment), "id": number, "sentence": sentence} for number, (segment, (sentence, _)) in said
        ],
    }


def steady(paint: Callable[..., None], *args: Any) -> Layer:
    """A layer that stays the same during its step."""
    return lambda canvas, share: paint(canvas, *args)


def tomatoes(radius: float, *places: Point) -> Layer:
    """Slices of tomato around the middle."""
    return layers(*(steady(kitchen.tomato_slice, (MIDDLE[0] + x, MIDDLE[1] + y), radius) for x, y in places))


def _shred(canvas: Canvas, where: Point) -> None:
    canvas.limb([where, (where[0] + 12, where[1] + 3)], 5, 5, (252, 196, 60))


def _cheese(canvas: Canvas, share: float) -> None:
    kitchen.crumbs(canvas, MIDDLE, 48, 8 + round(22 * share), (252, 150, 40))


def _syrup(canvas: Canvas, share: float) -> None:
    canvas.ellipse((MIDDLE[0], MIDDLE[1] - 2), 20 + 16 * share, 14 + 12 * share, SYRUP)


SOUP, EGG, BATTER, SYRUP = (208, 82, 40), (246, 200, 76), (246, 226, 172), (150, 76, 22)
LEAF = partial(kitchen.leaves, radius=1, count=1)
BLUE, GREEN = (84, 130, 190), (96, 160, 120)  # glazes
PAN, PLATE, SOUP_POT = steady(kitchen.pan), steady(kitchen.plate), steady(kitchen.pot, SOUP)
WHITE_BOWL = steady(kitchen.bowl, (226, 222, 210))
LETTUCE = layers(WHITE_BOWL, steady(kitchen.leaves, MIDDLE, 50, 14))
GARNISH = tomatoes(15, (-26, -20), (22, -28), (-8, 22), (34, 16))
SALAD = layers(WHITE_BOWL, steady(kitchen.leaves, MIDDLE, 52, 24), GARNISH)
EGGS = layers(PAN, lambda canvas, share: kitchen.eggs(canvas, MIDDLE, 20 + 40 * share))
OMELETTE = layers(PAN, steady(kitchen.eggs, MIDDLE, 60), _cheese)
CHUNKS = tomatoes(18, (-34, -18), (-8, -34), (18, -12), (-20, 20), (26, 26), (2, 6))
TOMATO_POT = layers(steady(kitchen.pot, (84, 86, 92)), CHUNKS)
BASIL = layers(SOUP_POT, steady(kitchen.leaves, MIDDLE, 34, 9, (58, 130, 50)))
BROWNING = partial(cook.fry, lambda canvas, share: kitchen.pancake(canvas, MIDDLE, 52, 0.3 + 0.7 * share))
RAW_PANCAKE = layers(PAN, lambda canvas, share: kitchen.pancake(canvas, MIDDLE, 18 + 30 * share, 0))
STACK = layers(*(steady(kitchen.pancake, (MIDDLE[0] + 4 - 3 * n, MIDDLE[1] + 5 - 4 * n)) for n in range(3)))
EGG_BOWL, BATTER_BOWL = steady(kitchen.bowl, BLUE, EGG), steady(kitchen.bowl, GREEN, BATTER)
BREAD = layers(steady(kitchen.board), steady(kitchen.bread, MIDDLE))
TOMATO_BREAD = layers(BREAD, steady(kitchen.cheese, MIDDLE), tomatoes(19, (-20, -16), (22, -14), (-16, 22)))
SERVED = layers(PLATE, steady(kitchen.bread, (136, 112), 0.8), steady(kitchen.leaves, (150, 168), 22, 5))

_SALAD: Steps = [
    ("slice the cucumber on the board", partial(cook.chop, kitchen.cucumber, (52, 126, 58), (206, 232, 170))),
    ("cut the tomatoes into slices", cook.cut_tomatoes),
    ("put lettuce leaves in a white bowl", partial(cook.add, LETTUCE, LEAF)),
    ("explain which dressing goes with the salad", None),
    ("pour olive oil over the salad", partial(cook.pour, SALAD, (120, 134, 60), (214, 196, 70))),
    ("toss the salad with a wooden spoon", partial(cook.stir, SALAD)),
]
_OMELETTE: Steps = [
    ("whisk the eggs in a blue bowl", partial(cook.stir, EGG_BOWL, tool=kitchen.whisk, reach=26)),
    ("chop a red bell pepper", partial(cook.chop, kitchen.pepper, (204, 40, 36), (246, 196, 176))),
    ("pour the eggs into the pan", partial(cook.pour, EGGS, BLUE, EGG)),
    ("sprinkle grated cheese on the omelette", partial(cook.add, OMELETTE, _shred)),
    ("show how to fold the omelette", None),
]
_SOUP: Steps = [
    ("greet the viewers and introduce the soup", None),
    ("cut the tomatoes", cook.cut_tomatoes),
    ("place the tomatoes in a pot", partial(cook.place, TOMATO_POT, kitchen.tomato_slice)),
    ("pour broth into the pot", partial(cook.pour, TOMATO_POT, (190, 200, 210), (214, 160, 70))),
    ("stir the soup with a wooden spoon", partial(cook.stir, SOUP_POT)),
    ("add basil leaves to the soup", partial(cook.add, BASIL, LEAF)),
]
_PANCAKES: Steps = [
    ("whisk the batter in a green bowl", partial(cook.stir, BATTER_BOWL, tool=kitchen.whisk, reach=26)),
    ("pour the batter into the pan", partial(cook.pour, RAW_PANCAKE, GREEN, BATTER)),
    ("fry the pancake until it is brown", BROWNING),
    ("stack the pancakes on a plate", partial(cook.place, layers(PLATE, STACK), kitchen.pancake)),
    ("pour syrup over the pancakes", partial(cook.pour, layers(PLATE, STACK, _syrup), (190, 150, 90), SYRUP)),
]
_SANDWICH: Steps = [
    ("spread butter on a slice of bread", cook.spread),
    ("put a slice of cheese on the bread", partial(cook.place, BREAD, kitchen.cheese)),
    ("lay tomato slices on the cheese", partial(cook.place, TOMATO_BREAD, kitchen.tomato_slice)),
    ("cut the sandwich in two", cook.halve),
    ("serve the sandwich on a plate with lettuce", partial(cook.serve, SERVED)),
]

#: The films by video name, which is shaped like YouTube's.
COOKING_VIDEOS = {
    "-Salad0mini": Film(Cooking(101, "training", (198, 194, 186), 21, _SALAD)),
    "Omelette-m1": Film(Cooking(102, "validation", (150, 112, 80), 22, _OMELETTE), Fraction(15), ".mkv"),
    "soup_MINI-2": Film(Cooking(103, "training", (88, 92, 98), 23, _SOUP)),
    "PancakeMin3": Film(Cooking(104, "training", (214, 204, 184), 24, _PANCAKES), Fraction(15000, 1001)),
    "_sandwich-4": Film(Cooking(105, "validation", (170, 176, 184), 25, _SANDWICH), suffix=".mkv"),
}
