"""Measure what the small model of two things draws: ``python -m studies.small_diffusion.measure_relations``.

As `studies.small_diffusion.measure`, by `twinset_demo.small_world.relations`. With ``--swaps`` each
caption is drawn beside its swap, from the same noise, and the share of pairs is counted of which each picture is as its
own caption says. Then it is not as the other one: no picture is right for both.
"""

import time
from collections.abc import Sequence

import numpy as np

from studies.small_diffusion.measure import ON_SHEET, draw, sample_held_out
from studies.small_diffusion.report import Cell, Share, options, write
from twinset_demo.models import SMALL_RELATIONS
from twinset_demo.small_diffusion.relations import (
    Arrangement,
    colours_swapped,
    every_arrangement,
    is_held_out,
    sample_arrangement,
    things_swapped,
)
from twinset_demo.small_world.relations import ATTRIBUTES, judge_arrangement, read_arrangement_picture

BETWEEN = 3  # white pixels between a picture and that of the swap
SWAPS = {"things": things_swapped, "colours": colours_swapped}


def main(arguments: Sequence[str] | None = None) -> None:
    """Draw, judge, print and write ``fidelity.json`` and ``fidelity.png``."""
    parser = options(__doc__, out="relations", batch=50)
    parser.set_defaults(model=SMALL_RELATIONS.folder)
    parser.add_argument("--prompts", type=int, default=500)
    parser.add_argument("--swaps", choices=tuple(SWAPS), help="draw the swap of each caption too")
    given = parser.parse_args(arguments)
    scenes = held_out_arrangements(given.prompts, given.seed)
    if given.swaps:
        swap = SWAPS[given.swaps]
        # Colours of two things of one colour cannot be swapped.
        scenes = [scene for scene in scenes if swap(scene) != scene]
    began = time.monotonic()
    verdicts, sheet = [], []
    for drawn_scenes in [scenes, *([[swap(scene) for scene in scenes]] if given.swaps else [])]:
        pictures = draw(given.model, drawn_scenes, given.steps, given.guidance, given.seed, given.batch, given.device)
        sheet.append(pictures)
        seen = [read_arrangement_picture(picture) for picture in pictures]
        verdicts.append([judge_arrangement(*both) for both in zip(seen, drawn_scenes, strict=True)])
    seconds = time.monotonic() - began
    shares = arrangement_fidelity(verdicts[0])
    if given.swaps:
        shares["both of caption and swap"] = Share.count(
            all(first.values()) and all(second.values()) for first, second in zip(*verdicts, strict=True)
        )
    for name, share in shares.items():
        print(f"{name:34} {share}")
    print(f"{len(scenes)} captions in {seconds:.0f} s, {given.steps} steps, guidance {given.guidance}")
    cells = []
    for number, scene in enumerate(scenes[:ON_SHEET]):
        wrong = sorted({name for judged in verdicts for name, right in judged[number].items() if not right})
        remark = f"not right: {', '.join(wrong)}" if wrong else "right"
        said = scene.caption() + (f" / {swap(scene).caption()}" if given.swaps else "")
        first, *second = (pictures[number] for pictures in sheet)
        if second:
            first = np.pad(first, ((0, 0), (0, BETWEEN), (0, 0)), constant_values=255)
        cells.append(Cell([first, *second], said, remark, bool(wrong)))
    write(given, "fidelity", {"shares": shares}, cells, columns=5 if given.swaps else 10)


def held_out_arrangements(number: int, seed: int) -> list[Arrangement]:
    """Scenes that training never saw, no two captions alike; asking for more keeps the first ones.

    Raises:
        WrongUse: there are not so many.
    """
    held_out = sum(map(is_held_out, every_arrangement()))
    return sample_held_out(number, held_out, seed, sample_arrangement, is_held_out)


def arrangement_fidelity(verdicts: Sequence[dict[str, bool]]) -> dict[str, Share]:
    """Shares of pictures that are right in each attribute, and in all of them."""
    shares = {name: Share.count(right[name] for right in verdicts) for name in ATTRIBUTES}
    shares["all that the caption says"] = Share.count(all(right.values()) for right in verdicts)
    return shares


if __name__ == "__main__":
    main()
