"""Plays of one change after the other, with boundaries and captions in the format of GEBC (Kinetics-GEB+)."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from twinset_demo.miniature.acting import BASE, TOP, Beat, Play
from twinset_demo.miniature.actor import AHEAD, BLUE, CARRYING, CHEST, GREEN, HIGH, RED, sit, squat, stand, stoop
from twinset_demo.miniature.film import Film
from twinset_demo.miniature.room import Room

BALL, BOTTLE, BROOM = {"ball": "both"}, {"bottle": "near"}, {"broom": "near"}
ONE_HAND, BOTH_HANDS = {"dumbbell": "near"}, {"dumbbell": "both"}
LIFTED = "holding the ball in front of the chest"
_LIFT, _BENT = stand(90, 1, CARRYING, CARRYING), stoop(200, 1)
_DRINK = stand(150, 1, (22, 14), nod=-0.3)
_FORWARD = sit(148, 1, (34, -26), (32, -28), lean=0.9, nod=0.3)
_SWEEP = stand(120, 1, (26, -24), (22, -8), lean=0.2, nod=0.25)
_TURNING = stand(120, 1, (22, 8), (16, -30))
_KICK = replace(stand(160, 1, (-20, -34), (26, -26)), near_foot=(42, 30))
_LOW, _CHIN = stand(176, 1, (10, -40), (8, -40)), stand(176, 1, (20, -2), (20, -2))
_AWAY = stand(176, 0, (44, 0))

_BALL = Play(
    Room((206, 210, 186), (166, 124, 82), window=220, picture=60, seed=11),
    BLUE,
    {"ball": (122, 218)},
    [
        Beat(1.3, stand(90, 1), status="standing behind the ball"),
        Beat(1.6, _LIFT, BALL, via=stoop(90, 1), status=LIFTED, also="lift the ball up to the chest"),
        Beat(1.4, stand(90, 1, HIGH, HIGH, nod=-0.3), BALL, status="holding the ball above the head"),
        Beat(1.4, _LIFT, BALL, status=LIFTED),
        Beat(1.5, squat(90, 1, CARRYING, CARRYING), BALL, status="squatting with the ball in the hands"),
        Beat(1.6, stand(200, 1, CARRYING, CARRYING), BALL, status="walking with the ball", also="walk to the right"),
        Beat(1.5, _BENT, puts={"ball": (232, 218)}, via=_BENT, status="bending over the ball on the floor"),
        Beat(1.4, stand(200, 0, (22, 26), (22, 26)), status="raising both hands"),
    ],
)
_BOTTLE = Play(
    Room((216, 196, 180), (140, 104, 76), window=70, picture=270, seed=12),
    RED,
    {"table": (222, BASE), "bottle": (188, TOP)},
    [
        Beat(1.3, stand(150, 0), status="standing beside the table with both arms hanging"),
        Beat(1.3, stand(150, 1, nod=0.25), status="looking at the bottle on the table", also="turn towards the bottle"),
        Beat(1.4, stand(150, 1, CHEST), BOTTLE, status="holding the bottle in front of the chest"),
        Beat(1.5, _DRINK, BOTTLE, tilt={"bottle": -1.9}, status="drinking from the bottle", also="drink water"),
        Beat(1.4, stand(150, 1, CHEST), BOTTLE, status="holding the bottle in front of the chest"),
        Beat(1.3, stand(150, 0, (30, 30)), BOTTLE, status="showing the bottle in the raised hand"),
        Beat(1.7, stand(50, -1, CARRYING), BOTTLE, status="walking away with the bottle in the hand"),
    ],
)
_CHAIR = Play(
    Room((188, 200, 214), (158, 118, 84), window=260, picture=160, seed=13),
    RED,
    {"chair": (150, BASE)},
    [
        Beat(1.3, stand(196, 1), status="standing in front of the chair"),
        Beat(1.4, sit(148, 1), status="sitting on the chair", also="sit down on the chair"),
        Beat(1.4, sit(148, 1, HIGH, HIGH), status="sitting with both arms raised above the head"),
        Beat(1.4, sit(148, 1, AHEAD, AHEAD), status="sitting with both arms stretched forward"),
        Beat(1.4, _FORWARD, status="sitting and bending the upper body forward", also="bend the upper body downward"),
        Beat(1.4, sit(148, 1), status="sitting on the chair"),
        Beat(1.4, stand(196, 0, (34, 8), (34, 8)), status="standing with the arms spread", also="stand up"),
    ],
)
_BROOM = Play(
    Room((212, 206, 196), (176, 136, 92), window=60, picture=170, seed=14),
    GREEN,
    {"broom": (292, 216), "box": (236, 214)},
    [
        Beat(1.6, stand(272, 1, (20, -30)), BROOM, status="holding the broom beside the box"),
        Beat(1.8, stand(120, -1, (24, -24)), BROOM, status="walking with the broom in the hand"),
        Beat(1.6, _SWEEP, BROOM, tilt={"broom": -0.35}, busy=(9, 2), status="sweeping the floor with the broom"),
        Beat(1.5, stand(120, 0, (24, -14), (20, 10)), BROOM, status="facing the camera with one arm bent"),
        Beat(1.5, replace(_SWEEP, near=(24, -10)), BROOM, tilt={"broom": -1.5}, status="moving the broom upward"),
        Beat(1.5, squat(120, 1, (26, -6), CHEST), BROOM, status="squatting with the broom in the hand"),
        Beat(1.5, _TURNING, BROOM, tilt={"broom": 3.14}, status="turning the broom upside down"),
    ],
)
_HANDS = Play(
    Room((222, 214, 190), (132, 96, 70), window=80, picture=240, seed=15),
    BLUE,
    {},
    [
        Beat(1.3, stand(160, 0), status="standing with both arms hanging"),
        Beat(1.4, stand(160, 0, (14, 38)), busy=(9, 0), status="waving with one hand", also="raise one hand and wave"),
        Beat(1.3, stand(160, 0, (44, 2), (44, 2)), status="spreading both arms to the sides"),
        Beat(1.3, stand(160, 0, (-6, -16), (-6, -16)), status="folding both hands in front of the chest"),
        Beat(1.3, stand(160, 1, AHEAD, (40, 4)), status="pointing to the right with both hands", also="turn right"),
        Beat(1.3, stand(160, 1, (24, -30), (22, -30), lean=1.0), status="bowing", also="bow down"),
        Beat(1.3, _KICK, status="kicking with one leg", also="kick forward"),
        Beat(1.3, squat(160, 1), status="squatting with the arms stretched forward"),
    ],
)
_WEIGHT = Play(
    Room((196, 212, 206), (146, 112, 84), window=250, picture=110, seed=16),
    GREEN,
    {"table": (70, BASE), "dumbbell": (206, 218)},
    [
        Beat(1.3, stand(172, 0), status="standing beside the dumbbell"),
        Beat(1.3, stoop(176, 1), status="bending over the dumbbell"),
        Beat(1.5, _LOW, BOTH_HANDS, via=stoop(176, 1), status="holding the dumbbell with both arms hanging"),
        Beat(1.4, _CHIN, BOTH_HANDS, status="lifting the dumbbell to the chin", also="pull it up"),
        Beat(1.4, stand(176, 1, (4, 44), (4, 44)), BOTH_HANDS, status="pressing the dumbbell above the head"),
        Beat(1.5, squat(176, 1, (20, -6), (20, -6)), BOTH_HANDS, status="squatting with the dumbbell"),
        Beat(1.4, _AWAY, ONE_HAND, status="holding the dumbbell in one stretched arm", also="put the arm down"),
    ],
)

#: The films by video name, which is shaped like YouTube's.
EVENT_VIDEOS = {
    "-Ball0mini_": Film(_BALL),
    "Bottle1mini": Film(_BOTTLE, Fraction(24), uneven=True),
    "_chair-Mini": Film(_CHAIR, suffix=".mkv"),
    "broom3-MINI": Film(_BROOM, Fraction(10)),
    "HANDSmini-4": Film(_HANDS),
    "weight_Mini": Film(_WEIGHT, suffix=".mkv"),
}


def event_boundaries(name: str, play: Play) -> Iterator[dict[str, Any]]:
    """Boundaries of one video; a second caption of the same boundary ends in ``B`` where an act has other words."""
    subject = play.actor.name
    for number, (old, new) in enumerate(pairwise(play.beats)):
        before, timestamp, after = play.starts[number : number + 3]
        wordings = [(old.status, new.status)]
        if old.also or new.also:
            wordings.append((old.also or old.status, new.also or new.status))
        for letter, (status_before, status_after) in zip("AB", wordings, strict=False):
            yield {
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
