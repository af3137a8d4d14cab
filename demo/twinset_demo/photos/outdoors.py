"""What stands or lies outdoors."""

from twinset_demo.canvas import box_outline, ellipse_outline, shade
from twinset_demo.photos.sheet import BRIGHT, GLAZE, METAL, PATTERNS, SIZES, WOOD, Kind, Look, Sheet, darker

_TRUNK = (112, 78, 48)


def _tree(sheet: Sheet, look: Look) -> None:
    sheet.polygon([(-5, 0), (-4, -44), (4, -44), (6, 0)], _TRUNK)
    sheet.stroke([(0, -34), (12, -48)], 4, _TRUNK)
    for tint, lift in ((0.76, 0.0), (1.0, 3.0)):
        for x, y, radius in ((-17, -52, 15), (16, -51, 16), (-9, -70, 17), (11, -71, 17), (0, -58, 18)):
            sheet.ellipse((x, y - lift), radius, radius - lift / 2, shade(look.rgb, tint))


def _bench(sheet: Sheet, look: Look) -> None:
    slat, leg = (WOOD, (70, 70, 74)) if look.material == "wooden" else (METAL, (92, 98, 108))
    sheet.boxes([(x, -38, x + 4, 0) for x in (-27, 24)], leg)
    for top in (-40, -31):
        sheet.box(-34, top, 34, top + 7, slat)
        sheet.box(-34, top + 5.4, 34, top + 7, shade(slat, 0.75))
    sheet.polygon([(-32, -21), (32, -21), (35, -14), (-35, -14)], shade(slat, 1.1))
    sheet.box(-35, -14, 35, -11, shade(slat, 0.72))


def _traffic_light(sheet: Sheet, look: Look) -> None:
    sheet.box(-3, -50, 3, 0, (92, 96, 100))
    sheet.box(-11, -100, 11, -46, (38, 40, 44))
    for name, y, light in (("red", -90, (240, 50, 44)), ("yellow", -73, (250, 206, 50)), ("green", -56, (60, 206, 90))):
        sheet.ellipse((0, y), 7, 7, light if look.color == name else shade(light, 0.3))


def _stop_sign(sheet: Sheet, look: Look) -> None:
    sheet.box(-2.5, -52, 2.5, 0, (120, 124, 128))
    for radius, colour in ((21.0, (248, 246, 242)), (18.5, look.rgb)):
        cut = radius * 0.414
        half = [(-cut, -radius), (cut, -radius), (radius, -cut), (radius, cut)]
        sheet.polygon([(x, y - 66) for x, y in (*half, *((-x, -y) for x, y in half))], colour)
    white = (248, 246, 242)
    sheet.stroke([(-9, -70), (-12, -71), (-14, -69), (-10, -66), (-10, -63), (-13, -61.5), (-15, -63)], 1.7, white)
    sheet.strokes([[(-7, -70.5), (-1, -70.5)], [(-4, -70.5), (-4, -61.5)]], 1.7, white)
    sheet.ring((3.6, -66), 3.8, 1.7, white)
    sheet.stroke([(10, -61.5), (10, -70.5), (13, -70), (14, -68), (13, -66), (10, -66)], 1.7, white)


def _fire_hydrant(sheet: Sheet, look: Look) -> None:
    edge = darker(look)
    sheet.box(-12, -5, 12, 0, edge)
    sheet.box(-9, -34, 9, -4, look.rgb)
    sheet.box(-12, -36, 12, -31, edge)
    sheet.polygon([(-9, -36), (-6, -44), (6, -44), (9, -36)], look.rgb)
    sheet.box(-3, -48, 3, -43, edge)
    sheet.ellipses([(side * 12, -22) for side in (-1, 1)], 4.5, 5.5, edge)
    sheet.ellipse((0, -22), 5.5, 5.5, (214, 214, 208))
    sheet.ellipse((0, -22), 2.4, 2.4, (110, 112, 116))


def _umbrella(sheet: Sheet, look: Look) -> None:
    sheet.stroke([(0, 0), (0, -84)], 2.6, (120, 96, 70))
    if look.state == "closed":
        sheet.cloth([(-3, -84), (3, -84), (9, -36), (4, -28), (-4, -28), (-9, -36)], look)
        sheet.stroke([(-8, -44), (8, -44)], 2, darker(look))
        return
    canopy = [(-42, -56), (-37, -69), (-24, -79), (-8, -84), (8, -84), (24, -79), (37, -69), (42, -56)]
    scallops = [(28, -60), (14, -56), (0, -60), (-14, -56), (-28, -60)]
    sheet.cloth([*canopy, *scallops], look)
    sheet.strokes([[(0, -84), (x * 0.7, -74), (x, -57)] for x in (-14, 14)], 1, darker(look))
    sheet.stroke([(0, -84), (0, -89)], 2, (120, 96, 70))


def _kite(sheet: Sheet, look: Look) -> None:
    sheet.stroke([(0, -26), (5, -18), (-3, -10), (4, -2)], 1.4, (90, 80, 80))
    for x, y in ((4, -18), (-2, -9)):
        sheet.polygon([(x - 6, y - 4), (x - 6, y + 4), (x + 6, y - 4), (x + 6, y + 4)], (230, 90, 60))
    sheet.cloth([(0, -84), (22, -58), (0, -26), (-22, -58)], look)
    sheet.strokes([[(0, -84), (0, -26)], [(-22, -58), (22, -58)]], 1.2, (70, 60, 56))


def _surfboard(sheet: Sheet, look: Look) -> None:
    sheet.polygon([(-10, 0), (-12, -30), (-10, -64), (0, -90), (10, -64), (12, -30), (10, 0)], darker(look))
    sheet.polygon([(-8, 0), (-10, -30), (-8, -62), (0, -85), (8, -62), (10, -30), (8, 0)], look.rgb)
    sheet.stroke([(0, -84), (0, -1)], 1.6, (250, 248, 240))
    sheet.box(-9.5, -34, 9.5, -29, (250, 248, 240))


def _towel(sheet: Sheet, look: Look) -> None:
    sheet.cloth([(-30, -20), (38, -20), (30, 0), (-38, 0)], look)
    sheet.stroke([(-38, 0), (30, 0)], 1.6, darker(look))


def _flower(sheet: Sheet, look: Look) -> None:
    for x, y in ((-22, -20), (-11, -27), (0, -21), (11, -28), (22, -20)):
        sheet.stroke([(x * 0.8, 0), (x, y)], 2, (58, 130, 56))
        sheet.ellipse((x * 0.8 + 4, -7), 5, 2.4, (74, 150, 66))
        for dx, dy in ((0, -5.4), (5, -1.6), (3, 4.4), (-3, 4.4), (-5, -1.6)):
            sheet.ellipse((x + dx, y + dy), 4.1, 4.1, look.rgb)
        sheet.ellipse((x, y), 3, 3, (150, 90, 30) if look.color == "yellow" else (250, 214, 60))


def _rock(sheet: Sheet, look: Look) -> None:
    sheet.polygon([(-29, 0), (-27, -16), (-14, -32), (6, -36), (22, -24), (29, -8), (28, 0)], shade(look.rgb, 0.8))
    sheet.polygon([(-25, -14), (-13, -29), (5, -33), (12, -22), (-6, -16)], shade(look.rgb, 1.1))
    sheet.polygon([(12, -22), (20, -23), (27, -7), (14, -6)], shade(look.rgb, 0.95))


def _house(sheet: Sheet, look: Look) -> None:
    sheet.box(24, -84, 36, -56, (150, 84, 66))
    sheet.box(-44, -48, 44, 0, look.rgb)
    sheet.polygon([(-52, -46), (-34, -80), (34, -80), (52, -46)], (128, 66, 52))
    sheet.polygon([(-52, -46), (52, -46), (51, -50), (-51, -50)], (98, 50, 40))
    sheet.box(-9, -34, 9, 0, (96, 64, 42))
    sheet.ellipse((5, -16), 1.5, 1.5, (236, 200, 90))
    for left in (-36, 18):
        sheet.box(left - 2, -38, left + 20, -16, (250, 250, 246))
        sheet.box(left, -36, left + 18, -18, (164, 204, 230))
        sheet.stroke([(left + 9, -36), (left + 9, -18)], 1.4, (250, 250, 246))


def _fence(sheet: Sheet, look: Look) -> None:
    board = look.rgb
    sheet.boxes([(-170, y, 170, y + 5) for y in (-26, -11)], shade(board, 0.82))
    for x in range(-164, 172, 16):
        sheet.polygon([(x - 4.5, 0), (x - 4.5, -29), (x, -35), (x + 4.5, -29), (x + 4.5, 0)], board)
        sheet.stroke([(x + 4.5, -29), (x + 4.5, 0)], 0.8, shade(board, 0.7))


def _ball(sheet: Sheet, look: Look) -> None:
    sheet.ellipse((0, -17), 17, 17, darker(look))
    sheet.cloth(ellipse_outline((0, -17), 16, 16), look)
    sheet.ellipse((-6, -24), 3, 2.6, shade(look.rgb, 1.4))


def _backpack(sheet: Sheet, look: Look) -> None:
    sheet.ring((0, -44), 5, 2.4, darker(look))
    sheet.polygon([(-17, 0), (-18, -28), (-12, -42), (12, -42), (18, -28), (17, 0)], look.rgb)
    sheet.polygon([(-17, -28), (-12, -42), (12, -42), (17, -28), (0, -24)], darker(look))
    sheet.cloth(box_outline(-12, -18, 12, -3), Look(color=look.color))
    sheet.stroke([(-12, -18), (12, -18), (12, -3), (-12, -3), (-12, -18)], 1.4, darker(look))
    sheet.box(-2, -20, 2, -14, (226, 200, 110))


def _suitcase(sheet: Sheet, look: Look) -> None:
    sheet.stroke([(-8, -36), (-8, -45), (8, -45), (8, -36)], 3, (60, 56, 54))
    sheet.box(-23, -37, 23, -2, darker(look))
    sheet.box(-21.5, -35.5, 21.5, -3.5, look.rgb)
    sheet.boxes([(x, -37, x + 3.6, -2) for x in (-14, 11)], (70, 52, 40))
    sheet.ellipses([(x, -1.5) for x in (-17, 17)], 2.6, 2.2, (40, 40, 42))


_UMBRELLAS = {"color": BRIGHT, "pattern": PATTERNS, "state": ("open", "open", "closed")}
_TOWELS = {"color": ("red", "blue", "green", "yellow", "pink"), "pattern": PATTERNS}
OUTDOORS = {
    "tree": Kind(_tree, "tree-merged", {"color": ("green", "yellow"), "size": SIZES}, shadow=(22, 3.5)),
    "bench": Kind(_bench, "bench", {"material": ("wooden", "metal")}, top=17, shadow=(34, 3)),
    "traffic light": Kind(_traffic_light, "traffic light", {"color": ("red", "green", "yellow")}),
    "stop sign": Kind(_stop_sign, "stop sign", {"color": ("red",)}),
    "fire hydrant": Kind(_fire_hydrant, "fire hydrant", {"color": ("red", "yellow")}, shadow=(14, 3)),
    "umbrella": Kind(_umbrella, "umbrella", _UMBRELLAS),
    "kite": Kind(_kite, "kite", {"color": BRIGHT, "pattern": PATTERNS}),
    "surfboard": Kind(_surfboard, "surfboard", {"color": ("red", "blue", "yellow", "green")}, shadow=(13, 3)),
    "towel": Kind(_towel, "towel", _TOWELS, flat=True),
    "flowers": Kind(_flower, "flower", {"color": ("red", "yellow", "pink", "white", "purple")}),
    "rock": Kind(_rock, "rock-merged", {"color": ("gray", "brown"), "size": SIZES}, shadow=(30, 3)),
    "house": Kind(_house, "house", {"color": ("white", "yellow", "red", "blue")}, top=84),
    "fence": Kind(_fence, "fence-merged", {"color": ("white", "brown")}),
    "ball": Kind(_ball, "sports ball", {"color": GLAZE, "pattern": PATTERNS, "size": SIZES}, shadow=(15, 3)),
    "backpack": Kind(_backpack, "backpack", {"color": ("red", "blue", "green", "black", "yellow")}, shadow=(18, 3)),
    "suitcase": Kind(_suitcase, "suitcase", {"color": ("red", "blue", "green", "black", "brown")}, shadow=(22, 3)),
}
