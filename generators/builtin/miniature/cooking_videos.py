"""Five little cooking videos and their segments, in YouCook2's own format."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from generators.builtin.miniature import food
from generators.builtin.miniature.canvas import Canvas, Point
from generators.builtin.miniature.cooking_steps import (
    MIDDLE,
    Step,
    add,
    chop,
    cut_tomatoes,
    fry,
    halve,
    in_bowl,
    in_pan,
    in_pot,
    on_plate,
    place,
    pour,
    spread,
    stir,
    with_hand,
)
from generators.builtin.miniature.film import Film
from generators.builtin.miniature.kitchen import board, draw_counter, whisk
from generators.builtin.miniature.presenter import draw_presenter
from shards.kinds.samples import Pixels

STEP_SECONDS, PAUSE = 1.5, 0.3
GREEN, SOUP, EGG, BATTER, SYRUP = (104, 176, 66), (208, 82, 40), (246, 200, 76), (246, 226, 172), (150, 76, 22)


@dataclass(frozen=True)
class Recipe:
    """A video: its steps with their sentences; a step of None shows the presenter's face."""

    number: int
    part: str
    counter: Canvas
    steps: Sequence[tuple[str, Step | None]]

    def segments(self) -> list[tuple[float, float]]:
        """Start and end of every step, in seconds."""
        starts = [round(PAUSE + n * (STEP_SECONDS + PAUSE), 3) for n in range(len(self.steps))]
        return [(start, round(start + STEP_SECONDS, 3)) for start in starts]

    def seconds(self) -> float:
        """Length of the video."""
        return round(self.segments()[-1][1] + PAUSE, 3)

    def picture(self, seconds: float) -> Pixels:
        """(240, 320, 3) RGB picture of one moment; between two steps the cut lies half way."""
        segments = self.segments()
        number = min(len(segments) - 1, int(max(0.0, seconds - PAUSE / 2) / (STEP_SECONDS + PAUSE)))
        start, end = segments[number]
        share = min(1.0, max(0.0, (seconds - start) / (end - start)))
        canvas, step = self.counter.copy(), self.steps[number][1]
        if step is None:
            draw_presenter(canvas, seconds)
        else:
            step(canvas, share)
        return canvas.pixels()


def cooking_videos() -> dict[str, tuple[Recipe, Film]]:
    """The recipes and how they are filmed, by video name (shaped like YouTube's)."""
    found: dict[str, tuple[Recipe, Film]] = {}
    for name, recipe, rate, suffix in (
        ("-Salad0mini", _salad(), Fraction(12), ".mp4"),
        ("Omelette-m1", _omelette(), Fraction(15), ".mkv"),
        ("soup_MINI-2", _soup(), Fraction(12), ".mp4"),
        ("PancakeMin3", _pancakes(), Fraction(15000, 1001), ".mp4"),
        ("_sandwich-4", _sandwich(), Fraction(12), ".mkv"),
    ):
        found[name] = recipe, Film(recipe.picture, recipe.seconds(), rate, suffix)
    return found


def database_entry(name: str, recipe: Recipe) -> dict[str, Any]:
    """One video of ``{"database": {VIDEO: …}}``."""
    return {
        "duration": recipe.seconds(),
        "subset": recipe.part,
        "recipe_type": str(recipe.number),
        "video_url": f"miniature:youcook2/videos/{name}",
        "annotations": [
            {"segment": [start, end], "id": number, "sentence": sentence}
            for number, ((start, end), (sentence, _)) in enumerate(zip(recipe.segments(), recipe.steps, strict=True))
        ],
    }


def _leaf(canvas: Canvas, where: Point) -> None:
    food.leaves(canvas, where, 1, 1)


def _shred(canvas: Canvas, where: Point) -> None:
    canvas.limb([where, (where[0] + 12, where[1] + 3)], 5, 5, (252, 196, 60))


def _all(*drawings: Callable[[Canvas, float], None]) -> Callable[[Canvas, float], None]:
    def draw(canvas: Canvas, share: float) -> None:
        for drawing in drawings:
            drawing(canvas, share)

    return draw


def _salad() -> Recipe:
    bowl = in_bowl((226, 222, 210))

    def salad(canvas: Canvas, share: float) -> None:
        bowl(canvas, share)
        food.leaves(canvas, MIDDLE, 52, 24)
        for x, y in ((-26, -20), (22, -28), (-8, 22), (34, 16)):
            food.tomato_slice(canvas, (MIDDLE[0] + x, MIDDLE[1] + y), 15)

    green = chop(food.cucumber, (52, 126, 58), (206, 232, 170))
    return Recipe(
        101,
        "training",
        draw_counter((198, 194, 186), seed=21),
        [
            ("slice the cucumber on the board", green),
            ("cut the tomatoes into slices", cut_tomatoes),
            ("put lettuce leaves in a white bowl", add(_all(bowl, lambda c, s: food.leaves(c, MIDDLE, 50, 14)), _leaf)),
            ("explain which dressing goes with the salad", None),
            ("pour olive oil over the salad", pour(salad, (120, 134, 60), (214, 196, 70))),
            ("toss the salad with a wooden spoon", stir(salad)),
        ],
    )


def _omelette() -> Recipe:
    def omelette(canvas: Canvas, share: float) -> None:
        food.eggs(canvas, MIDDLE, 60)

    def cheesy(canvas: Canvas, share: float) -> None:
        omelette(canvas, share)
        food.crumbs(canvas, MIDDLE, 48, 8 + round(22 * share), (252, 150, 40))

    red = chop(food.pepper, (204, 40, 36), (246, 196, 176))
    return Recipe(
        102,
        "validation",
        draw_counter((150, 112, 80), seed=22),
        [
            ("whisk the eggs in a blue bowl", stir(in_bowl((84, 130, 190), EGG), whisk, 26)),
            ("chop a red bell pepper", red),
            (
                "pour the eggs into the pan",
                pour(in_pan(lambda c, s: food.eggs(c, MIDDLE, 20 + 40 * s)), (84, 130, 190), EGG),
            ),
            ("sprinkle grated cheese on the omelette", add(in_pan(cheesy), _shred)),
            ("show how to fold the omelette", None),
        ],
    )


def _soup() -> Recipe:
    def chunks(canvas: Canvas, share: float) -> None:
        in_pot((84, 86, 92))(canvas, share)
        for x, y in ((-34, -18), (-8, -34), (18, -12), (-20, 20), (26, 26), (2, 6)):
            food.tomato_slice(canvas, (MIDDLE[0] + x, MIDDLE[1] + y), 18)

    basil = _all(in_pot(SOUP), lambda c, s: food.leaves(c, MIDDLE, 34, 9, (58, 130, 50)))
    return Recipe(
        103,
        "training",
        draw_counter((88, 92, 98), seed=23),
        [
            ("greet the viewers and introduce the soup", None),
            ("cut the tomatoes", cut_tomatoes),
            ("place the tomatoes in a pot", place(chunks, food.tomato_slice)),
            ("pour broth into the pot", pour(chunks, (190, 200, 210), (214, 160, 70))),
            ("stir the soup with a wooden spoon", stir(in_pot(SOUP))),
            ("add basil leaves to the soup", add(basil, _leaf)),
        ],
    )


def _pancakes() -> Recipe:
    def stack(canvas: Canvas, share: float) -> None:
        for n in range(3):
            food.pancake(canvas, (MIDDLE[0] + 4 - 3 * n, MIDDLE[1] + 5 - 4 * n), 50)

    def syrup(canvas: Canvas, share: float) -> None:
        stack(canvas, share)
        canvas.ellipse((MIDDLE[0], MIDDLE[1] - 2), 20 + 16 * share, 14 + 12 * share, SYRUP)

    return Recipe(
        104,
        "training",
        draw_counter((214, 204, 184), seed=24),
        [
            ("whisk the batter in a green bowl", stir(in_bowl((96, 160, 120), BATTER), whisk, 26)),
            (
                "pour the batter into the pan",
                pour(in_pan(lambda c, s: food.pancake(c, MIDDLE, 18 + 30 * s, 0)), (96, 160, 120), BATTER),
            ),
            ("fry the pancake until it is brown", fry(lambda c, s: food.pancake(c, MIDDLE, 52, 0.3 + 0.7 * s))),
            ("stack the pancakes on a plate", place(on_plate(stack), food.pancake)),
            ("pour syrup over the pancakes", pour(on_plate(syrup), (190, 150, 90), SYRUP)),
        ],
    )


def _sandwich() -> Recipe:
    def slice_of_bread(canvas: Canvas, share: float) -> None:
        board(canvas, (160, 112))
        food.bread(canvas, MIDDLE)

    def with_cheese(canvas: Canvas, share: float) -> None:
        slice_of_bread(canvas, share)
        food.cheese(canvas, MIDDLE)

    def with_tomato(canvas: Canvas, share: float) -> None:
        with_cheese(canvas, share)
        for x, y in ((-20, -16), (22, -14), (-16, 22)):
            food.tomato_slice(canvas, (MIDDLE[0] + x, MIDDLE[1] + y), 19)

    finished = _all(lambda c, s: food.bread(c, (136, 112), 0.8), lambda c, s: food.leaves(c, (150, 168), 22, 5))
    return Recipe(
        105,
        "validation",
        draw_counter((170, 176, 184), seed=25),
        [
            ("spread butter on a slice of bread", spread),
            ("put a slice of cheese on the bread", place(slice_of_bread, food.cheese)),
            ("lay tomato slices on the cheese", place(with_tomato, food.tomato_slice)),
            ("cut the sandwich in two", halve),
            ("serve the sandwich on a plate with lettuce", with_hand(on_plate(finished))),
        ],
    )
