"""Plays at home and their scene graphs, in Action Genome's own format."""

from fractions import Fraction
from typing import Any

from twinset_demo.miniature.acting import BASE, TOP, Beat, Contacts, Play
from twinset_demo.miniature.actor import AHEAD, BLUE, CARRYING, CHEST, GREEN, RED, lie, sit, stand, stoop
from twinset_demo.miniature.film import Film
from twinset_demo.miniature.room import SOFA_SEAT, THINGS, Room

READING, MOUTH = (24.0, -8.0), (19.0, 8.0)  # where the near hand is
BOTTLE, BOOK, TOWEL, SANDWICH = {"bottle": "near"}, {"book": "near"}, {"towel": "near"}, {"sandwich": "near"}
PILLOW, BOX, DISH_AND_TOWEL = {"pillow": "both"}, {"box": "both"}, {"dish": "far", "towel": "near"}
ON_CHAIR: Contacts = {"chair": ("sitting_on",)}
ON_SOFA: Contacts = {"sofa": ("sitting_on",)}
DRINKING: Contacts = {"bottle": ("drinking_from", "holding")}
LYING: Contacts = {"sofa": ("lying_on",), "pillow": ("lying_on",)}
WIPING: Contacts = {"dish": ("wiping", "holding")}
EATING: Contacts = ON_CHAIR | {"sandwich": ("eating", "holding")}
TYPING: Contacts = ON_CHAIR | {"laptop": ("touching",)}
LEANING: Contacts = {"chair": ("sitting_on", "leaning_on")}
RELATIONS = ("attention_relationship", "spatial_relationship", "contacting_relationship")

_DRINK = Play(
    Room((214, 206, 178), (170, 122, 80), window=90, picture=250, seed=1),
    BLUE,
    {"table": (236, BASE), "bottle": (206, TOP)},
    [
        Beat(1.0, stand(40, 1)),
        Beat(1.8, stand(176, 1), looks="bottle"),
        Beat(1.3, stand(176, 1, CHEST, nod=0.25), BOTTLE, looks="bottle"),
        Beat(1.5, stand(176, 1, (22, 14), nod=-0.3), BOTTLE, tilt={"bottle": -1.9}, contacts=DRINKING),
        Beat(1.2, stand(176, 1, nod=0.1), puts={"bottle": (208, TOP)}),
        Beat(1.4, stand(168, 0)),
        Beat(1.8, stand(64, -1)),
    ],
)
_READ = sit(148, 1, READING, (20, -14), nod=0.3)
_BOOK = Play(
    Room((186, 204, 200), (150, 108, 72), window=250, picture=60, seed=2),
    RED,
    {"chair": (150, BASE), "table": (244, BASE), "book": (210, TOP)},
    [
        Beat(1.0, stand(50, 1, nod=0.3), looks="chair"),
        Beat(1.2, stand(104, 1)),
        Beat(1.3, sit(148, 1), contacts=ON_CHAIR),
        Beat(1.8, _READ, BOOK, via=sit(154, 1, (41, -10), lean=0.45), looks="book", contacts=ON_CHAIR),
        Beat(1.6, sit(144, 1, READING, (20, -14), lean=-0.17), BOOK, looks="book", contacts=LEANING),
        Beat(1.2, stand(178, 1, CHEST), BOOK),
        Beat(1.9, stand(52, -1, CARRYING), BOOK, contacts={"book": ("carrying",)}),
        Beat(1.2, stand(52, 1, READING, (20, -14), nod=0.3), BOOK, looks="book"),
    ],
)
_PILLOW_BEHIND = sit(184, 1, (-26, -30), (-26, -30), seat=SOFA_SEAT, lean=-0.3)
_SOFA = Play(
    Room((206, 184, 190), (136, 98, 66), window=60, picture=170, seed=3),
    GREEN,
    {"sofa": (216, 206), "pillow": (96, 218)},
    [
        Beat(1.0, stand(40, 1, nod=0.3), looks="pillow"),
        Beat(1.5, stand(66, 1, CHEST, (26, -18)), PILLOW, via=stoop(66, 1), looks="pillow"),
        Beat(1.4, stand(128, 1, CARRYING, CARRYING), PILLOW, contacts={"pillow": ("carrying", "holding")}),
        Beat(1.6, sit(176, 1, CHEST, CHEST, seat=SOFA_SEAT), PILLOW, contacts=ON_SOFA),
        Beat(1.8, lie(222, 1), puts={"pillow": (166, 173)}, via=_PILLOW_BEHIND, contacts=LYING),
        Beat(1.2, sit(222, 1, seat=SOFA_SEAT), contacts=ON_SOFA),
        Beat(1.3, stand(276, 1)),
    ],
)
_PUT, _TOUCH = stand(188, 1, (41, -16), (41, -16), lean=0.2), stand(186, 1, (38, -22), (38, -24), lean=0.1)
_BOX = Play(
    Room((196, 200, 216), (164, 130, 92), window=130, picture=40, seed=4),
    BLUE,
    {"table": (250, BASE), "box": (112, 218)},
    [
        Beat(1.0, stand(40, 0)),
        Beat(1.2, stand(76, 1, nod=0.35), looks="box"),
        Beat(1.4, stand(76, 1, CARRYING, CARRYING), BOX, via=stoop(80, 1), looks="box"),
        Beat(1.2, stand(76, 1, (7, 44), (7, 44), nod=-0.3), BOX, looks="box"),
        Beat(1.6, stand(176, 1, CARRYING, CARRYING), BOX, contacts={"box": ("holding", "carrying")}),
        Beat(1.2, _TOUCH, puts={"box": (236, TOP)}, via=_PUT, looks="box", contacts={"box": ("touching",)}),
        Beat(1.4, stand(178, 0, (30, -33)), contacts={"table": ("touching",)}),
        Beat(1.2, stand(182, -1, (-27, -32), (-30, -32), lean=-0.14), contacts={"table": ("leaning_on",)}),
        Beat(1.6, stand(96, -1)),
    ],
)
_TAKE, _WIPE = stand(190, 1, (42, -18), (28, -12), lean=0.1), stand(164, 1, (27, -9), (29, -9), nod=0.3)
_DISH = Play(
    Room((220, 212, 200), (128, 104, 84), window=50, picture=140, seed=5),
    RED,
    {"table": (224, BASE), "dish": (196, TOP), "towel": (236, TOP)},
    [
        Beat(1.0, stand(120, 0)),
        Beat(1.2, stand(164, 1, nod=0.3), looks="dish"),
        Beat(1.3, stand(164, 1, far=(28, -12), nod=0.3), {"dish": "far"}, looks="dish"),
        Beat(2.0, _WIPE, DISH_AND_TOWEL, via=_TAKE, busy=(1.0, 6.0), looks="dish", contacts=WIPING),
        Beat(1.4, stand(164, 1, CARRYING), TOWEL, puts={"dish": (196, TOP)}),
        Beat(1.6, stand(78, -1, CARRYING), TOWEL, contacts={"towel": ("carrying", "holding")}),
        Beat(1.3, stand(78, 0, (-8, -10)), TOWEL, looks="towel"),
    ],
)
_AT_TABLE, _TYPE = sit(124, 1, (41, -10), lean=0.3), sit(134, 1, AHEAD, AHEAD, lean=0.35, nod=0.2)
_LUNCH = Play(
    Room((200, 212, 184), (156, 112, 70), window=60, picture=270, seed=6),
    GREEN,
    {"chair": (126, BASE), "table": (208, BASE), "sandwich": (172, TOP), "laptop": (210, TOP)},
    [
        Beat(1.2, sit(124, 1, nod=0.1), looks="laptop", contacts=ON_CHAIR),
        Beat(1.5, sit(124, 1, MOUTH, (20, -30)), SANDWICH, via=_AT_TABLE, looks="sandwich", contacts=EATING),
        Beat(1.3, sit(124, 1, CHEST, (20, -30), nod=0.3), SANDWICH, looks="sandwich", contacts=ON_CHAIR),
        Beat(1.7, _TYPE, puts={"sandwich": (170, TOP)}, via=_AT_TABLE, looks="laptop", contacts=TYPING),
        Beat(1.3, stand(150, -1, nod=0.3), looks="chair"),
        Beat(1.6, stand(46, -1)),
        Beat(1.2, stand(46, 1), looks="table"),
    ],
)

#: The films by video name.
HOME_VIDEOS = {
    "DRINK": Film(_DRINK),
    "BOOK1": Film(_BOOK),
    "SOFA1": Film(_SOFA, Fraction(15000, 1001)),
    "BOX01": Film(_BOX, Fraction(10)),
    "DISH1": Film(_DISH, quarter_turns=1),
    "LUNCH": Film(_LUNCH),
}


def scene_graphs(name: str, film: Film[Play]) -> dict[str, list[dict[str, Any]]]:
    """Annotated frames of one video: ``VIDEO.mp4/000123.png`` (1-based frame numbers) → its objects.

    The official pickle holds boxes as (left, top, width, height) and objects out of sight with empty fields.
    """
    play, annotated = film.show, {}
    for beat, start in zip(play.beats, play.starts[:-1], strict=True):
        for share in (0.55, 0.85) if beat.seconds > 1.5 else (0.7,):
            number = int((start + share * beat.seconds) * film.rate) + 1
            seconds = float((number - 1) / film.rate)
            tag = f"{name}.mp4/{number:06d}.png"
            metadata = {"tag": tag, "set": "test"}
            objects: list[dict[str, Any]] = [
                {
                    "class": THINGS[thing].name,
                    "bbox": play.bbox(seconds, thing),
                    **play.relations(seconds, thing),
                    "visible": True,
                    "metadata": metadata,
                }
                for thing in play.things
            ]
            unseen = {"class": "doorway", "bbox": None, "visible": False, "metadata": metadata}
            annotated[tag] = [*objects, unseen | dict.fromkeys(RELATIONS)]
    return annotated
