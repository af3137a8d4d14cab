"""People, and animals that face right."""

from twinset_demo.canvas import Colour, shade
from twinset_demo.photos.sheet import PAINT, SIZES, Kind, Look, Sheet, darker

_SKIN = (228, 180, 146)
_DARK = (38, 32, 30)


def _face(sheet: Sheet, hair: Colour) -> None:
    sheet.ellipse((0, -70), 8.2, 9.5, _SKIN)
    sheet.ellipses([(x, -70.5) for x in (-3, 3)], 1.1, 1.3, _DARK)
    sheet.stroke([(-2.5, -65.5), (0, -64.6), (2.5, -65.5)], 1, (176, 70, 66))
    sheet.polygon([(-8.6, -70), (-8, -77), (-3, -80.5), (4, -80.5), (8, -77), (8.6, -70), (5, -75), (-5, -75)], hair)


def _man(sheet: Sheet, look: Look) -> None:
    for x in (-5, 5):
        sheet.limb([(x, -34), (x, -4)], 9.5, 8, (62, 70, 92))
        sheet.ellipse((x * 1.2, -2), 5.5, 3, _DARK)
    for side in (-1, 1):
        sheet.limb([(side * 10, -54), (side * 13.5, -32)], 7, 6, look.rgb)
        sheet.ellipse((side * 13.5, -30), 3.2, 3.6, _SKIN)
    sheet.polygon([(-11, -57), (-4, -61), (4, -61), (11, -57), (10, -30), (-10, -30)], look.rgb)
    sheet.stroke([(0, -60), (0, -32)], 0.8, darker(look))
    sheet.box(-3, -63, 3, -58, shade(_SKIN, 0.9))
    _face(sheet, (74, 50, 32))


def _woman(sheet: Sheet, look: Look) -> None:
    hair = (120, 62, 28)
    sheet.polygon([(-10, -74), (10, -74), (12, -52), (-12, -52)], hair)
    for x in (-4.5, 4.5):
        sheet.limb([(x, -24), (x, -3)], 6, 5, _SKIN)
        sheet.ellipse((x * 1.2, -2), 4.6, 2.6, (150, 40, 50))
    for side in (-1, 1):
        sheet.limb([(side * 8, -54), (side * 13, -34)], 5.5, 5, _SKIN)
    sheet.polygon([(-9, -57), (-3, -60), (3, -60), (9, -57), (7, -42), (15, -18), (-15, -18), (-7, -42)], look.rgb)
    sheet.stroke([(-7, -42), (7, -42)], 1.6, darker(look))
    sheet.box(-2.5, -63, 2.5, -58, shade(_SKIN, 0.9))
    _face(sheet, hair)


def _legs(sheet: Sheet, places: tuple[float, ...], top: float, width: float, colour: Colour) -> None:
    for number, x in enumerate(places):
        sheet.limb([(x, top), (x, -2)], width, width * 0.8, shade(colour, 0.8 if number % 2 else 1.0))


def _dog(sheet: Sheet, look: Look) -> None:
    fur = look.rgb
    sheet.limb([(-19, -24), (-26, -32), (-27, -40)], 5, 3.5, fur)
    _legs(sheet, (-16, -11, 11, 16), -18, 6.5, fur)
    sheet.limb([(-14, -22), (13, -23)], 19, 18, fur)
    sheet.limb([(13, -25), (20, -34)], 14, 12, fur)
    sheet.ellipse((21, -35), 9.5, 8.5, fur)
    sheet.limb([(24, -33), (32, -31)], 9, 7, shade(fur, 1.12))
    sheet.ellipse((34, -32.5), 2.4, 2.2, _DARK)
    sheet.ellipse((24, -37), 1.5, 1.7, (250, 250, 246) if look.color == "black" else _DARK)
    sheet.limb([(16, -40), (13, -29)], 6.5, 7.5, shade(fur, 0.62))
    sheet.stroke([(13, -27), (19, -25)], 2.6, (200, 40, 40) if look.color != "red" else (50, 70, 160))


def _cat(sheet: Sheet, look: Look) -> None:
    fur, line = look.rgb, shade(look.rgb, 0.6)
    sheet.limb([(12, -6), (22, -5), (24, -18)], 6, 4.5, fur)
    sheet.polygon([(-9, -26), (9, -26), (15, -8), (13, 0), (-13, 0), (-15, -8)], fur)
    for side in (-1, 1):
        sheet.polygon([(side * 11, -34), (side * 11.5, -48), (side * 2.5, -41)], fur)
        sheet.polygon([(side * 9.6, -37), (side * 10, -44.5), (side * 5, -40.5)], (232, 158, 158))
    sheet.ellipse((0, -33), 12.5, 10.5, fur)
    for side in (-1, 1):
        sheet.ellipse((side * 5, -34.5), 2.5, 2.8, (150, 200, 70))
        sheet.ellipse((side * 5, -34.5), 0.9, 2.4, _DARK)
        for dy in (0, 2.6):
            sheet.stroke([(side * 5, -29.5 + dy / 2), (side * 16, -31 + dy * 1.7)], 0.6, (236, 236, 232))
        sheet.ellipse((side * 5.5, -2), 4.6, 3, shade(fur, 1.12))
    sheet.polygon([(-1.8, -31), (1.8, -31), (0, -29)], (220, 110, 110))
    sheet.stroke([(0, -22), (0, -4)], 0.8, line)
    sheet.strokes([[(side * 12, y), (side * 7, y + 1)] for side in (-1, 1) for y in (-18, -12)], 1.4, line)


def _bird(sheet: Sheet, look: Look) -> None:
    feather = look.rgb
    sheet.strokes([[(x, -12), (x, -1), (x + 4, -1)] for x in (-2, 5)], 1.6, (226, 130, 30))
    sheet.polygon([(-10, -22), (-25, -21), (-24, -15), (-10, -12)], shade(feather, 0.7))
    sheet.ellipse((0, -18), 15, 10.5, feather)
    sheet.limb([(8, -22), (12, -33)], 12, 12, feather)
    sheet.ellipse((12, -34), 8, 7.5, feather)
    sheet.polygon([(18, -37), (28, -33), (18, -31)], (240, 150, 30))
    sheet.polygon([(6, -23), (-6, -25), (-18, -17), (-4, -13), (5, -16)], shade(feather, 0.78))
    sheet.ellipse((14, -36), 1.7, 1.7, (250, 250, 246) if look.color == "black" else _DARK)


def _horse(sheet: Sheet, look: Look) -> None:
    coat, mane = look.rgb, (40, 28, 22) if look.color != "black" else (96, 90, 90)
    sheet.limb([(-27, -40), (-36, -28), (-35, -12)], 7, 5, mane)
    _legs(sheet, (-21, -15, 14, 20), -28, 7.5, coat)
    sheet.boxes([(x - 3.6, -4, x + 3.6, 0) for x in (-21, -15, 14, 20)], _DARK)
    sheet.limb([(-16, -36), (16, -37)], 25, 24, coat)
    sheet.limb([(18, -40), (30, -62)], 19, 13, coat)
    sheet.limb([(30, -63), (42, -52)], 14, 10, coat)
    sheet.polygon([(25, -68), (28, -77), (31, -68)], coat)
    sheet.limb([(26, -70), (19, -58), (11, -46)], 6, 7, mane)
    sheet.ellipse((33, -63), 1.7, 1.9, (250, 250, 246) if look.color == "black" else _DARK)
    sheet.ellipse((43, -51), 1.2, 1.2, _DARK)


def _cow(sheet: Sheet, look: Look) -> None:
    coat, spot = look.rgb, (48, 44, 44) if look.color == "white" else (246, 244, 238)
    sheet.stroke([(-29, -42), (-34, -34), (-34, -16)], 2, shade(coat, 0.7))
    sheet.ellipse((-34, -14), 2.6, 4, spot)
    _legs(sheet, (-23, -17, 13, 19), -22, 8, coat)
    sheet.ellipse((-9, -18), 7, 5, (240, 178, 178))
    sheet.polygon([(-30, -44), (20, -45), (26, -38), (24, -20), (-28, -19), (-31, -30)], coat)
    for x, y, across, high in ((-17, -36, 9, 7), (6, -30, 8, 8), (-4, -41, 5, 3.5)):
        sheet.ellipse((x, y), across, high, spot)
    sheet.limb([(24, -42), (38, -38)], 18, 14, coat)
    sheet.ellipse((40, -36), 6.5, 7, (238, 184, 176))
    sheet.ellipse((42, -37), 1.1, 1.4, (150, 90, 90))
    sheet.ellipse((30, -46), 1.7, 1.9, (250, 250, 246) if look.color == "black" else _DARK)
    for left, tip in ((22, 20), (30, 34)):
        sheet.polygon([(left, -49), (tip, -57), (left + 4, -50)], (222, 206, 164))
    sheet.ellipse((20, -49), 5, 3, shade(coat, 0.75))


def _sheep(sheet: Sheet, look: Look) -> None:
    _legs(sheet, (-13, -8, 8, 13), -16, 5, (58, 52, 52))
    for inset, tint in ((0.0, 0.84), (1.2, 1.0)):
        for x, y in ((-18, -24), (-9, -31), (2, -33), (12, -30), (17, -23), (-10, -18), (2, -17), (11, -18), (0, -25)):
            sheet.ellipse((x, y), 10 - inset, 9 - inset, shade(look.rgb, tint))
    sheet.ellipse((24, -30), 7, 8.5, (58, 52, 52))
    sheet.ellipse((18, -33), 5, 2.6, (58, 52, 52))
    sheet.ellipse((22, -38), 6, 4.5, look.rgb)
    sheet.ellipse((26, -31), 1.4, 1.6, (250, 250, 246))


def _teddy_bear(sheet: Sheet, look: Look) -> None:
    fur, pale = look.rgb, shade(look.rgb, 1.35)
    for side in (-1, 1):
        sheet.ellipse((side * 10, -44), 5.6, 5.6, fur)
        sheet.ellipse((side * 10, -44), 3, 3, pale)
        sheet.limb([(side * 9, -24), (side * 18, -16)], 9, 9, fur)
    sheet.ellipse((0, -16), 14, 15, fur)
    sheet.ellipse((0, -15), 8.5, 9.5, pale)
    for side in (-1, 1):
        sheet.ellipse((side * 12, -6), 7.5, 6.5, fur)
        sheet.ellipse((side * 13, -5.5), 4.4, 4, pale)
    sheet.ellipse((0, -36), 12.5, 11, fur)
    sheet.ellipse((0, -32.5), 6, 4.6, pale)
    sheet.ellipse((0, -34.5), 2.2, 1.6, _DARK)
    for side in (-1, 1):
        sheet.ellipse((side * 5, -38.5), 1.5, 1.7, _DARK)
        sheet.polygon([(0, -25), (side * 7, -28), (side * 7, -21)], (206, 44, 60))


CREATURES = {
    "man": Kind(_man, "person", {"color": PAINT}, shadow=(14, 3)),
    "woman": Kind(_woman, "person", {"color": ("red", "blue", "green", "yellow", "pink")}, shadow=(14, 3)),
    "dog": Kind(_dog, "dog", {"color": ("brown", "black", "white", "gray"), "size": SIZES}, shadow=(26, 3)),
    "cat": Kind(_cat, "cat", {"color": ("orange", "black", "white", "gray")}, shadow=(20, 3)),
    "bird": Kind(_bird, "bird", {"color": ("white", "black", "blue", "red", "yellow")}, shadow=(15, 2.5)),
    "horse": Kind(_horse, "horse", {"color": ("brown", "black", "white")}, shadow=(34, 3.5)),
    "cow": Kind(_cow, "cow", {"color": ("white", "brown", "black")}, shadow=(34, 3.5)),
    "sheep": Kind(_sheep, "sheep", {"color": ("white",)}, shadow=(24, 3)),
    "teddy bear": Kind(_teddy_bear, "teddy bear", {"color": ("brown", "pink", "white"), "size": SIZES}, shadow=(20, 3)),
}
