"""Furniture and kitchen appliances."""

from twinset_demo.canvas import box_outline, ellipse_outline, shade
from twinset_demo.photos.sheet import BASIC, COLOURS, GLAZE, METAL, PATTERNS, WOOD, Kind, Look, Sheet, darker


def _couch(sheet: Sheet, look: Look) -> None:
    edge = darker(look)
    sheet.boxes([(x, -7, x + 7, 0) for x in (-62, 56)], (78, 54, 36))
    sheet.cloth([(-62, -14), (-64, -64), (-58, -72), (58, -72), (64, -64), (62, -14)], look)
    sheet.strokes([[(x, -70), (x, -38)] for x in (-21, 21)], 1.4, edge)
    sheet.box(-64, -38, 64, -6, edge)
    for left in (-61, -20, 21):
        sheet.cloth(box_outline(left, -37, left + 40, -20), look)
    for x in (-67, 67):
        sheet.limb([(x, -46), (x, -10)], 17, 17, shade(look.rgb, 0.92))


def _chair(sheet: Sheet, look: Look) -> None:
    frame = shade(look.rgb, 0.85)
    if look.material == "metal":
        sheet.stroke([(-17, 0), (-15, -80), (9, -80), (11, -36)], 3, METAL)
        sheet.stroke([(18, 0), (18, -34), (-12, -34), (-10, -6)], 3, METAL)
        sheet.box(-13, -76, 8, -54, look.rgb)
        sheet.polygon([(-18, -36), (12, -36), (22, -30), (-12, -30)], look.rgb)
        return
    sheet.boxes([(x, -34, x + 4.5, foot) for x, foot in ((-17, 0), (11, -4), (-9, 0), (19, 0))], shade(frame, 0.8))
    sheet.boxes([(x, -82, x + 4.5, -32) for x in (-18, 8)], frame)
    sheet.boxes([(-16, y, 10, y + 7) for y in (-79, -66, -53)], look.rgb)
    sheet.polygon([(-19, -38), (12, -38), (23, -32), (-10, -32)], shade(look.rgb, 1.1))
    sheet.polygon([(-10, -32), (23, -32), (23, -28), (-10, -28)], frame)


def _table(sheet: Sheet, look: Look) -> None:
    sheet.boxes([(x, -46, x + 7, 0) for x in (-52, 46)], shade(WOOD, 0.72))
    sheet.polygon([(-54, -58), (54, -58), (62, -46), (-62, -46)], shade(WOOD, 1.14))
    sheet.box(-62, -46, 62, -39, shade(WOOD, 0.84))


def _bed(sheet: Sheet, look: Look) -> None:
    sheet.boxes([(-78, -66, -70, 0), (70, -38, 76, 0)], shade(WOOD, 0.8))
    sheet.box(-72, -16, 72, -6, WOOD)
    sheet.box(-70, -32, 70, -14, (244, 242, 236))
    sheet.polygon([(-66, -32), (-62, -46), (-38, -46), (-34, -32)], (250, 250, 250))
    sheet.stroke([(-66, -32), (-34, -32)], 1.2, (206, 206, 210))
    sheet.cloth([(-30, -38), (70, -38), (72, -12), (-28, -12)], look)


def _pillow(sheet: Sheet, look: Look) -> None:
    outline = [(-18.0, -29.0), (0.0, -27.0), (18.0, -29.0), (17.0, -14.0), (19.0, 0.0), (0.0, -2.0), (-19.0, 0.0)]
    sheet.cloth([*outline, (-17, -14)], look)
    sheet.stroke([*outline, (-17, -14), outline[0]], 1.4, darker(look))


def _tv(sheet: Sheet, look: Look) -> None:
    sheet.boxes([(-16, -3, 16, 0), (-4, -8, 4, -2)], (50, 50, 54))
    sheet.box(-42, -60, 42, -8, (30, 30, 34))
    sheet.box(-39, -57, 39, -11, (120, 190, 236))
    sheet.polygon([(-39, -22), (-20, -44), (-4, -24), (14, -38), (39, -20), (39, -11), (-39, -11)], (84, 150, 90))
    sheet.ellipse((24, -47), 6, 6, (252, 226, 110))


def _lamp(sheet: Sheet, look: Look) -> None:
    sheet.ellipse((0, -2), 13, 3, (70, 66, 62))
    sheet.box(-1.6, -76, 1.6, -2, (90, 84, 78))
    sheet.polygon([(-11, -104), (11, -104), (21, -72), (-21, -72)], look.rgb)
    sheet.polygon([(-21, -72), (21, -72), (19, -69), (-19, -69)], (255, 244, 196))


def _rug(sheet: Sheet, look: Look) -> None:
    if look.shape == "round":
        sheet.polygon(ellipse_outline((0, -18), 95, 18), darker(look))
        sheet.cloth(ellipse_outline((0, -18), 88, 15), look)
        return
    sheet.polygon([(-82, -36), (82, -36), (98, 0), (-98, 0)], darker(look))
    sheet.cloth([(-78, -33), (78, -33), (91, -3), (-91, -3)], look)


def _curtain(sheet: Sheet, look: Look) -> None:
    sheet.cloth([(-17, -104), (17, -104), (19, -2), (9, 0), (0, -2), (-9, 0), (-19, -2)], look)
    sheet.strokes([[(x, -102), (x * 1.1, -2)] for x in (-9, 0, 9)], 1.2, darker(look))
    sheet.stroke([(-24, -105), (24, -105)], 3, (96, 76, 56))


def _window(sheet: Sheet, look: Look) -> None:
    frame = (248, 248, 244)
    if look.shape == "round":
        sheet.ellipse((0, -35), 34, 34, frame)
        sheet.ellipse((0, -35), 29, 29, (160, 208, 240))
        sheet.ellipse((-8, -42), 9, 5, (236, 246, 252))
        sheet.boxes([(-1.5, -64, 1.5, -6), (-29, -36.5, 29, -33.5)], frame)
        return
    sheet.box(-33, -68, 33, 0, frame)
    sheet.box(-28, -63, 28, -6, (160, 208, 240))
    sheet.ellipse((-13, -48), 10, 5, (236, 246, 252))
    sheet.ellipse((14, -12), 13, 8, (112, 168, 98))
    sheet.boxes([(-28, -6, 28, -5), (-1.5, -63, 1.5, -6), (-28, -37, 28, -34)], frame)
    sheet.box(-37, -4, 37, 1, (214, 214, 208))


def _clock(sheet: Sheet, look: Look) -> None:
    if look.shape == "square":
        sheet.box(-18, -36, 18, 0, look.rgb)
        sheet.box(-14.5, -32.5, 14.5, -3.5, (250, 250, 246))
    else:
        sheet.ellipse((0, -18), 18, 18, look.rgb)
        sheet.ellipse((0, -18), 14.5, 14.5, (250, 250, 246))
    sheet.ellipses(((0, -30), (12, -18), (0, -6), (-12, -18)), 1.3, 1.3, (60, 60, 64))
    sheet.stroke([(0, -18), (0, -28)], 1.6, (30, 30, 34))
    sheet.stroke([(0, -18), (7, -14)], 2, (30, 30, 34))


def _refrigerator(sheet: Sheet, look: Look) -> None:
    sheet.box(-31, -150, 31, 0, darker(look))
    sheet.boxes([(-29.5, -148, 29.5, -96), (-29.5, -93, 29.5, -4)], look.rgb)
    sheet.boxes([(-24, top, -20.5, bottom) for top, bottom in ((-128, -104), (-84, -50))], (120, 124, 130))


def _oven(sheet: Sheet, look: Look) -> None:
    sheet.box(-32, -70, 32, 0, darker(look))
    sheet.box(-31, -58, 31, -2, look.rgb)
    sheet.ellipses([(x, -64) for x in (-22, -8, 8, 22)], 3.6, 3.6, (40, 40, 44))
    sheet.box(-24, -42, 24, -12, (36, 36, 42))
    sheet.box(-21, -39, 21, -15, (92, 66, 50))
    sheet.stroke([(-24, -49), (24, -49)], 3, (124, 128, 134))


def _microwave(sheet: Sheet, look: Look) -> None:
    sheet.box(-32, -38, 32, 0, darker(look))
    sheet.box(-31, -37, 31, -1.5, look.rgb)
    sheet.box(-27, -32, 12, -6, (46, 48, 56))
    sheet.stroke([(-20, -10), (-8, -28)], 1.6, (96, 100, 110))
    sheet.box(16, -32, 28, -26, (90, 220, 140))
    sheet.boxes([(x, y, x + 3.6, y + 3.6) for x in (18, 24) for y in (-21, -15, -9)], (70, 72, 80))


def _sink(sheet: Sheet, look: Look) -> None:
    sheet.polygon([(-35, -14), (35, -14), (30, 3), (-30, 3)], (206, 212, 218))
    sheet.polygon([(-29, -11), (29, -11), (25, 0), (-25, 0)], (130, 138, 148))
    sheet.stroke([(0, -14), (0, -40), (4, -44), (12, -44), (15, -40), (15, -32)], 4.4, (176, 184, 192))
    sheet.box(-5, -19, 5, -13, (150, 158, 168))
    sheet.stroke([(-13, -18), (-13, -22)], 5, COLOURS["gray"])


_COUCHES = {"color": ("red", "blue", "green", "gray"), "pattern": ("plain", "striped")}
_CHAIRS = {"color": ("red", "blue", "green", "white", "black"), "material": ("wooden", "metal")}
_RUGS = {"color": BASIC, "pattern": PATTERNS, "shape": ("round", "rectangular")}
FURNITURE = {
    "couch": Kind(_couch, "couch", _COUCHES, top=37, shadow=(74, 4)),
    "chair": Kind(_chair, "chair", _CHAIRS, top=33, shadow=(22, 3)),
    "table": Kind(_table, "table-merged", {"material": ("wooden",)}, top=52, shadow=(58, 3.5)),
    "bed": Kind(_bed, "bed", {"color": BASIC, "pattern": PATTERNS}, top=26, shadow=(76, 4)),
    "pillow": Kind(_pillow, "pillow", {"color": GLAZE, "pattern": PATTERNS}),
    "television": Kind(_tv, "tv", {"color": ("black",)}),
    "lamp": Kind(_lamp, "light", {"color": ("yellow", "red", "white", "blue", "green")}, shadow=(16, 3)),
    "rug": Kind(_rug, "rug-merged", _RUGS, flat=True),
    "curtain": Kind(_curtain, "curtain", {"color": BASIC, "pattern": PATTERNS}),
    "window": Kind(_window, "window-other", {"shape": ("rectangular", "round")}),
    "clock": Kind(_clock, "clock", {"color": ("red", "blue", "black", "green", "brown"), "shape": ("round", "square")}),
    "refrigerator": Kind(_refrigerator, "refrigerator", {"color": ("white", "red", "blue", "gray")}, shadow=(32, 3)),
    "oven": Kind(_oven, "oven", {"color": ("white", "red", "gray", "black")}),
    "microwave": Kind(_microwave, "microwave", {"color": ("white", "red", "black", "gray")}),
    "sink": Kind(_sink, "sink", {"material": ("metal",)}),
}
