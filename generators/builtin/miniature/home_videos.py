"""Plays at home and their scene graphs, in Action Genome's own format."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from generators.builtin.miniature.acting import Beat, Play, Prop
from generators.builtin.miniature.film import Film
from generators.builtin.miniature.poses import (
    AHEAD,
    BASE,
    BLUE,
    CARRYING,
    CHEST,
    GREEN,
    MOUTH,
    READING,
    RED,
    TOP,
    lie,
    sit,
    stand,
    stoop,
)
from generators.builtin.miniature.room import draw_room
from generators.builtin.miniature.things import THINGS


def home_videos() -> dict[str, tuple[Play, Film]]:
    """The plays and how they are filmed, by video name."""
    plays = {
        "DRINK": _drink(),
        "BOOK1": _book(),
        "SOFA1": _sofa(),
        "BOX01": _box(),
        "DISH1": _dish(),
        "LUNCH": _lunch(),
    }
    rates = {"SOFA1": Fraction(15000, 1001), "BOX01": Fraction(10)}
    return {
        name: (
            play,
            Film(play.picture, play.starts[-1], rates.get(name, Fraction(12)), quarter_turns=int(name == "DISH1")),
        )
        for name, play in plays.items()
    }


Contacts = dict[str, tuple[str, ...]]


def scene_graphs(name: str, play: Play, rate: Fraction) -> dict[str, list[dict[str, Any]]]:
    """Annotated frames of one video: ``VIDEO.mp4/000123.png`` (1-based frame numbers) → its objects.

    The official pickle holds boxes as (left, top, width, height) and objects out of sight with empty fields.
    """
    annotated: dict[str, list[dict[str, Any]]] = {}
    for beat, start in zip(play.beats, play.starts[:-1], strict=True):
        for share in (0.55, 0.85) if beat.seconds > 1.5 else (0.7,):
            number = int((start + share * beat.seconds) * rate) + 1
            seconds = float((number - 1) / rate)
            tag = f"{name}.mp4/{number:06d}.png"
            metadata = {"tag": tag, "set": "test"}
            annotated[tag] = [
                {
                    "class": THINGS[prop.kind].name,
                    "bbox": play.bbox(seconds, thing),
                    **play.relations(seconds, thing),
                    "visible": True,
                    "metadata": metadata,
                }
                for thing, prop in play.props.items()
            ]
            unseen: dict[str, Any] = {"class": "doorway", "bbox": None, "visible": False, "metadata": metadata}
            annotated[tag].append(
                unseen | dict.fromkeys(("attention_relationship", "spatial_relationship", "contacting_relationship"))
            )
    return annotated


def _drink() -> Play:
    hold: Contacts = {"bottle": ("holding",)}
    drink: Contacts = {"bottle": ("drinking_from", "holding")}
    return Play(
        draw_room((214, 206, 178), (170, 122, 80), 90, 250, seed=1),
        BLUE,
        {"table": Prop("table", (236, BASE)), "bottle": Prop("bottle", (206, TOP))},
        [
            Beat(1.0, stand(40, 1)),
            Beat(1.8, stand(176, 1), looks="bottle"),
            Beat(1.3, stand(176, 1, near=CHEST, nod=0.25), {"bottle": "near"}, looks="bottle", contacts=hold),
            Beat(
                1.5, stand(176, 1, near=(22, 14), nod=-0.3), {"bottle": "near"}, tilt={"bottle": -1.9}, contacts=drink
            ),
            Beat(1.2, stand(176, 1, nod=0.1), puts={"bottle": (208, TOP)}),
            Beat(1.4, stand(168, 0)),
            Beat(1.8, stand(64, -1)),
        ],
    )


def _book() -> Play:
    seat: Contacts = {"chair": ("sitting_on",)}
    back: Contacts = {"chair": ("sitting_on", "leaning_on")}
    read: Contacts = {"book": ("holding",)}
    hold = {"book": "near"}
    return Play(
        draw_room((186, 204, 200), (150, 108, 72), 250, 60, seed=2),
        RED,
        {"chair": Prop("chair", (150, BASE)), "table": Prop("table", (244, BASE)), "book": Prop("book", (210, TOP))},
        [
            Beat(1.0, stand(50, 1, nod=0.3), looks="chair"),
            Beat(1.2, stand(104, 1)),
            Beat(1.3, sit(148, 1), contacts=seat),
            Beat(
                1.8,
                sit(148, 1, near=READING, far=(20, -14), nod=0.3),
                hold,
                via=sit(154, 1, near=(41, -10), lean=0.45),
                looks="book",
                contacts=seat | read,
            ),
            Beat(1.6, sit(144, 1, near=READING, far=(20, -14), lean=-0.17), hold, looks="book", contacts=back | read),
            Beat(1.2, stand(178, 1, near=CHEST), hold, contacts=read),
            Beat(1.9, stand(52, -1, near=CARRYING), hold, contacts={"book": ("carrying",)}),
            Beat(1.2, stand(52, 1, near=READING, far=(20, -14), nod=0.3), hold, looks="book", contacts=read),
        ],
    )


def _sofa() -> Play:
    near = {"pillow": "both"}
    return Play(
        draw_room((206, 184, 190), (136, 98, 66), 60, 170, seed=3),
        GREEN,
        {"sofa": Prop("sofa", (216, 206)), "pillow": Prop("pillow", (96, 218))},
        [
            Beat(1.0, stand(40, 1, nod=0.3), looks="pillow"),
            Beat(
                1.5,
                stand(66, 1, near=CHEST, far=(26, -18)),
                near,
                via=stoop(66, 1),
                looks="pillow",
                contacts={"pillow": ("holding",)},
            ),
            Beat(1.4, stand(128, 1, CARRYING, CARRYING), near, contacts={"pillow": ("carrying", "holding")}),
            Beat(
                1.6,
                sit(176, 1, near=CHEST, far=CHEST, seat=36),
                near,
                contacts={"pillow": ("holding",), "sofa": ("sitting_on",)},
            ),
            Beat(
                1.8,
                lie(222, 1),
                puts={"pillow": (166, 173)},
                via=sit(184, 1, near=(-26, -30), far=(-26, -30), seat=36, lean=-0.3),
                contacts={"sofa": ("lying_on",), "pillow": ("lying_on",)},
            ),
            Beat(1.2, sit(222, 1, seat=36), contacts={"sofa": ("sitting_on",)}),
            Beat(1.3, stand(276, 1)),
        ],
    )


def _box() -> Play:
    both = {"box": "both"}
    hold = {"box": ("holding", "carrying")}
    return Play(
        draw_room((196, 200, 216), (164, 130, 92), 130, 40, seed=4),
        BLUE,
        {"table": Prop("table", (250, BASE)), "box": Prop("box", (112, 218))},
        [
            Beat(1.0, stand(40, 0)),
            Beat(1.2, stand(76, 1, nod=0.35), looks="box"),
            Beat(
                1.4,
                stand(76, 1, CARRYING, CARRYING),
                both,
                via=stoop(80, 1),
                looks="box",
                contacts={"box": ("holding",)},
            ),
            Beat(1.2, stand(76, 1, (7, 44), (7, 44), nod=-0.3), both, looks="box", contacts={"box": ("holding",)}),
            Beat(1.6, stand(176, 1, CARRYING, CARRYING), both, contacts=hold),
            Beat(
                1.2,
                stand(186, 1, near=(38, -22), far=(38, -24), lean=0.1),
                puts={"box": (236, TOP)},
                via=stand(188, 1, (41, -16), (41, -16), lean=0.2),
                looks="box",
                contacts={"box": ("touching",)},
            ),
            Beat(1.4, stand(178, 0, near=(30, -33)), contacts={"table": ("touching",)}),
            Beat(1.2, stand(182, -1, near=(-27, -32), far=(-30, -32), lean=-0.14), contacts={"table": ("leaning_on",)}),
            Beat(1.6, stand(96, -1)),
        ],
    )


def _dish() -> Play:
    dish = {"dish": "far"}
    both = {"dish": "far", "towel": "near"}
    return Play(
        draw_room((220, 212, 200), (128, 104, 84), 50, 140, seed=5),
        RED,
        {"table": Prop("table", (224, BASE)), "dish": Prop("dish", (196, TOP)), "towel": Prop("towel", (236, TOP))},
        [
            Beat(1.0, stand(120, 0)),
            Beat(1.2, stand(164, 1, nod=0.3), looks="dish"),
            Beat(
                1.3,
                stand(164, 1, far=(28, -12), nod=0.3),
                dish,
                looks="dish",
                contacts={"dish": ("holding",)},
            ),
            Beat(
                2.0,
                stand(164, 1, near=(27, -9), far=(29, -9), nod=0.3),
                both,
                via=stand(190, 1, near=(42, -18), far=(28, -12), lean=0.1),
                busy=(1.0, 6.0),
                looks="dish",
                contacts={"dish": ("wiping", "holding"), "towel": ("holding",)},
            ),
            Beat(
                1.4,
                stand(164, 1, near=CARRYING),
                {"towel": "near"},
                puts={"dish": (196, TOP)},
                contacts={"towel": ("holding",)},
            ),
            Beat(
                1.6,
                stand(78, -1, near=CARRYING),
                {"towel": "near"},
                contacts={"towel": ("carrying", "holding")},
            ),
            Beat(1.3, stand(78, 0, near=(-8, -10)), {"towel": "near"}, looks="towel", contacts={"towel": ("holding",)}),
        ],
    )


def _lunch() -> Play:
    seat: Contacts = {"chair": ("sitting_on",)}
    return Play(
        draw_room((200, 212, 184), (156, 112, 70), 60, 270, seed=6),
        GREEN,
        {
            "chair": Prop("chair", (126, BASE)),
            "table": Prop("table", (208, BASE)),
            "sandwich": Prop("sandwich", (172, TOP)),
            "laptop": Prop("laptop", (210, TOP)),
        },
        [
            Beat(1.2, sit(124, 1, nod=0.1), contacts=seat, looks="laptop"),
            Beat(
                1.5,
                sit(124, 1, near=MOUTH, far=(20, -30)),
                {"sandwich": "near"},
                looks="sandwich",
                contacts=seat | {"sandwich": ("eating", "holding")},
                via=sit(124, 1, near=(41, -10), lean=0.3),
            ),
            Beat(
                1.3,
                sit(124, 1, near=CHEST, far=(20, -30), nod=0.3),
                {"sandwich": "near"},
                looks="sandwich",
                contacts=seat | {"sandwich": ("holding",)},
            ),
            Beat(
                1.7,
                sit(134, 1, near=AHEAD, far=AHEAD, lean=0.35, nod=0.2),
                puts={"sandwich": (170, TOP)},
                via=sit(124, 1, near=(41, -10), lean=0.3),
                looks="laptop",
                contacts=seat | {"laptop": ("touching",)},
            ),
            Beat(1.3, stand(150, -1, nod=0.3), looks="chair"),
            Beat(1.6, stand(46, -1)),
            Beat(1.2, stand(46, 1), looks="table"),
        ],
    )
