"""Plays of one change after the other, with boundaries and captions in the format of GEBC (Kinetics-GEB+)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

from generators.builtin.miniature.acting import Beat, Play, Prop, boundaries
from generators.builtin.miniature.film import Film
from generators.builtin.miniature.poses import (
    AHEAD,
    BASE,
    BLUE,
    CARRYING,
    CHEST,
    GREEN,
    HIGH,
    RED,
    TOP,
    sit,
    squat,
    stand,
    stoop,
)
from generators.builtin.miniature.room import draw_room

BOTH = {"ball": "both"}


def event_videos() -> dict[str, tuple[Play, Film, str]]:
    """Play, how it is filmed, and the subject of its captions, by video name (shaped like YouTube's)."""
    ball, bottle, chair, broom, hands, weight = _ball(), _bottle(), _chair(), _broom(), _hands(), _weight()
    return {
        "-Ball0mini_": (ball, Film(ball.picture, ball.starts[-1], Fraction(12)), "man in blue shirt"),
        "Bottle1mini": (
            bottle,
            Film(bottle.picture, bottle.starts[-1], Fraction(24), uneven=True),
            "woman in red shirt",
        ),
        "_chair-Mini": (chair, Film(chair.picture, chair.starts[-1], Fraction(12), ".mkv"), "woman in red shirt"),
        "broom3-MINI": (broom, Film(broom.picture, broom.starts[-1], Fraction(10)), "man in green shirt"),
        "HANDSmini-4": (hands, Film(hands.picture, hands.starts[-1], Fraction(12)), "man in blue shirt"),
        "weight_Mini": (weight, Film(weight.picture, weight.starts[-1], Fraction(12), ".mkv"), "man in green shirt"),
    }


def event_boundaries(name: str, play: Play, subject: str) -> list[dict[str, Any]]:
    """Boundaries of one video; a second caption of the same boundary ends in ``B`` where an act has other words."""
    found: list[dict[str, Any]] = []
    for number, (timestamp, before, after) in enumerate(boundaries(play)):
        old, new = play.beats[number], play.beats[number + 1]
        wordings = [(old.status, new.status)]
        if old.also or new.also:
            wordings.append((old.also or old.status, new.also or new.status))
        for letter, (status_before, status_after) in zip("AB", wordings, strict=False):
            found.append(
                {
                    "boundary_id": f"{name}_{number}{letter}",
                    "timestamp": timestamp,
                    "prev_timestamp": before,
                    "next_timestamp": after,
                    "label": "Change of Action",
                    "subject": subject,
                    "status_before": status_before,
                    "status_after": status_after,
                    "action_of_cause": None,
                    "caption": f"Subject: {subject} //Status_Before: {status_before} //Status_After: {status_after}",
                }
            )
    return found


def _ball() -> Play:
    held = stand(90, 1, CARRYING, CARRYING)
    return Play(
        draw_room((206, 210, 186), (166, 124, 82), 220, 60, seed=11),
        BLUE,
        {"ball": Prop("ball", (122, 218))},
        [
            Beat(1.3, stand(90, 1), status="standing behind the ball"),
            Beat(
                1.6,
                held,
                BOTH,
                via=stoop(90, 1),
                status="holding the ball in front of the chest",
                also="lift the ball up to the chest",
            ),
            Beat(1.4, stand(90, 1, HIGH, HIGH, nod=-0.3), BOTH, status="holding the ball above the head"),
            Beat(1.4, held, BOTH, status="holding the ball in front of the chest"),
            Beat(1.5, squat(90, 1, CARRYING, CARRYING), BOTH, status="squatting with the ball in the hands"),
            Beat(
                1.6, stand(200, 1, CARRYING, CARRYING), BOTH, status="walking with the ball", also="walk to the right"
            ),
            Beat(
                1.5,
                stoop(200, 1),
                puts={"ball": (232, 218)},
                via=stoop(200, 1),
                status="bending over the ball on the floor",
            ),
            Beat(1.4, stand(200, 0, (22, 26), (22, 26)), status="raising both hands"),
        ],
    )


def _bottle() -> Play:
    one = {"bottle": "near"}
    drinking = stand(150, 1, (22, 14), nod=-0.3)
    return Play(
        draw_room((216, 196, 180), (140, 104, 76), 70, 270, seed=12),
        RED,
        {"table": Prop("table", (222, BASE)), "bottle": Prop("bottle", (188, TOP))},
        [
            Beat(1.3, stand(150, 0), status="standing beside the table with both arms hanging"),
            Beat(
                1.3,
                stand(150, 1, nod=0.25),
                status="looking at the bottle on the table",
                also="turn towards the bottle",
            ),
            Beat(1.4, stand(150, 1, CHEST), one, status="holding the bottle in front of the chest"),
            Beat(1.5, drinking, one, tilt={"bottle": -1.9}, status="drinking from the bottle", also="drink water"),
            Beat(1.4, stand(150, 1, CHEST), one, status="holding the bottle in front of the chest"),
            Beat(1.3, stand(150, 0, (30, 30)), one, status="showing the bottle in the raised hand"),
            Beat(1.7, stand(50, -1, CARRYING), one, status="walking away with the bottle in the hand"),
        ],
    )


def _chair() -> Play:
    return Play(
        draw_room((188, 200, 214), (158, 118, 84), 260, 160, seed=13),
        RED,
        {"chair": Prop("chair", (150, BASE))},
        [
            Beat(1.3, stand(196, 1), status="standing in front of the chair"),
            Beat(1.4, sit(148, 1), status="sitting on the chair", also="sit down on the chair"),
            Beat(1.4, sit(148, 1, HIGH, HIGH), status="sitting with both arms raised above the head"),
            Beat(1.4, sit(148, 1, AHEAD, AHEAD), status="sitting with both arms stretched forward"),
            Beat(
                1.4,
                sit(148, 1, (34, -26), (32, -28), lean=0.9, nod=0.3),
                status="sitting and bending the upper body forward",
                also="bend the upper body downward",
            ),
            Beat(1.4, sit(148, 1), status="sitting on the chair"),
            Beat(1.4, stand(196, 0, (34, 8), (34, 8)), status="standing with the arms spread", also="stand up"),
        ],
    )


def _broom() -> Play:
    one, swept = {"broom": "near"}, stand(120, 1, (26, -24), (22, -8), lean=0.2, nod=0.25)
    return Play(
        draw_room((212, 206, 196), (176, 136, 92), 60, 170, seed=14),
        GREEN,
        {"broom": Prop("broom", (292, 216)), "box": Prop("box", (236, 214))},
        [
            Beat(1.6, stand(272, 1, (20, -30)), one, status="holding the broom beside the box"),
            Beat(1.8, stand(120, -1, (24, -24)), one, status="walking with the broom in the hand"),
            Beat(1.6, swept, one, tilt={"broom": -0.35}, busy=(9, 2), status="sweeping the floor with the broom"),
            Beat(1.5, stand(120, 0, (24, -14), (20, 10)), one, status="facing the camera with one arm bent"),
            Beat(
                1.5,
                replace(swept, near=(24, -10)),
                one,
                tilt={"broom": -1.5},
                status="moving the broom upward",
            ),
            Beat(1.5, squat(120, 1, (26, -6), CHEST), one, status="squatting with the broom in the hand"),
            Beat(
                1.5,
                stand(120, 1, (22, 8), (16, -30)),
                one,
                tilt={"broom": 3.14},
                status="turning the broom upside down",
            ),
        ],
    )


def _hands() -> Play:
    return Play(
        draw_room((222, 214, 190), (132, 96, 70), 80, 240, seed=15),
        BLUE,
        {},
        [
            Beat(1.3, stand(160, 0), status="standing with both arms hanging"),
            Beat(
                1.4, stand(160, 0, (14, 38)), busy=(9, 0), status="waving with one hand", also="raise one hand and wave"
            ),
            Beat(1.3, stand(160, 0, (44, 2), (44, 2)), status="spreading both arms to the sides"),
            Beat(1.3, stand(160, 0, (-6, -16), (-6, -16)), status="folding both hands in front of the chest"),
            Beat(1.3, stand(160, 1, AHEAD, (40, 4)), status="pointing to the right with both hands", also="turn right"),
            Beat(1.3, stand(160, 1, (24, -30), (22, -30), lean=1.0), status="bowing", also="bow down"),
            Beat(
                1.3,
                replace(stand(160, 1, (-20, -34), (26, -26)), near_foot=(42, 30)),
                status="kicking with one leg",
                also="kick forward",
            ),
            Beat(1.3, squat(160, 1), status="squatting with the arms stretched forward"),
        ],
    )


def _weight() -> Play:
    one = {"dumbbell": "near"}
    both = {"dumbbell": "both"}
    return Play(
        draw_room((196, 212, 206), (146, 112, 84), 250, 110, seed=16),
        GREEN,
        {"table": Prop("table", (70, BASE)), "dumbbell": Prop("dumbbell", (206, 218))},
        [
            Beat(1.3, stand(172, 0), status="standing beside the dumbbell"),
            Beat(1.3, stoop(176, 1), status="bending over the dumbbell"),
            Beat(
                1.5,
                stand(176, 1, (10, -40), (8, -40)),
                both,
                via=stoop(176, 1),
                status="holding the dumbbell with both arms hanging",
            ),
            Beat(
                1.4,
                stand(176, 1, (20, -2), (20, -2)),
                both,
                status="lifting the dumbbell to the chin",
                also="pull it up",
            ),
            Beat(1.4, stand(176, 1, (4, 44), (4, 44)), both, status="pressing the dumbbell above the head"),
            Beat(1.5, squat(176, 1, (20, -6), (20, -6)), both, status="squatting with the dumbbell"),
            Beat(
                1.4,
                stand(176, 0, (44, 0)),
                one,
                status="holding the dumbbell in one stretched arm",
                also="put the arm down",
            ),
        ],
    )
