"""Vehicles, seen from the side."""

from twinset_demo.canvas import shade
from twinset_demo.photos.sheet import BASIC, PAINT, SIZES, Kind, Look, Sheet, darker

_GLASS = (176, 214, 236)
_TYRE = (36, 36, 40)


def _wheels(sheet: Sheet, places: tuple[float, ...], radius: float) -> None:
    for share, colour in ((1.0, _TYRE), (0.5, (188, 192, 198))):
        sheet.ellipses([(x, -radius) for x in places], radius * share, radius * share, colour)


def _car(sheet: Sheet, look: Look) -> None:
    sheet.polygon([(-26, -20), (-15, -36), (14, -36), (28, -20)], darker(look))
    sheet.polygon([(-22, -20), (-13, -33), (-1.5, -33), (-1.5, -20)], _GLASS)
    sheet.polygon([(1.5, -20), (1.5, -33), (12, -33), (23, -20)], _GLASS)
    sheet.polygon([(-44, -8), (-43, -19), (-26, -22), (28, -22), (42, -18), (44, -8)], look.rgb)
    sheet.box(-44, -8, 44, -6, shade(look.rgb, 0.6))
    sheet.stroke([(0, -21), (0, -8)], 1, darker(look))
    sheet.stroke([(4, -17), (9, -17)], 1.4, darker(look))
    sheet.ellipse((41, -15), 2.5, 3, (255, 240, 160))
    sheet.ellipse((-42, -15), 2, 3, (180, 30, 30))
    _wheels(sheet, (-26, 27), 9)


def _bus(sheet: Sheet, look: Look) -> None:
    sheet.polygon([(-62, -7), (-62, -56), (-58, -60), (58, -60), (62, -54), (62, -7)], look.rgb)
    sheet.box(-62, -22, 62, -18, shade(look.rgb, 0.7))
    sheet.boxes([(left, -52, left + 18, -32) for left in (-57, -36, -15, 6)], _GLASS)
    sheet.box(27, -52, 41, -8, shade(look.rgb, 0.6))
    sheet.box(29, -50, 39, -12, _GLASS)
    sheet.polygon([(46, -52), (62, -52), (62, -30), (46, -30)], _GLASS)
    sheet.ellipse((60, -14), 2.5, 3, (255, 240, 160))
    _wheels(sheet, (-40, 44), 10)


def _truck(sheet: Sheet, look: Look) -> None:
    sheet.box(-58, -14, 56, -8, (64, 64, 70))
    sheet.box(-58, -56, 22, -12, shade(look.rgb, 0.88))
    sheet.strokes([[(x, -54), (x, -14)] for x in (-38, -18, 2)], 1, darker(look))
    sheet.polygon([(26, -10), (26, -46), (44, -46), (54, -28), (58, -26), (58, -10)], look.rgb)
    sheet.polygon([(31, -27), (31, -42), (42, -42), (50, -27)], _GLASS)
    sheet.stroke([(40, -24), (40, -12)], 1, darker(look))
    sheet.ellipse((56, -17), 2.5, 3, (255, 240, 160))
    _wheels(sheet, (-42, -20, 42), 9.5)


def _bicycle(sheet: Sheet, look: Look) -> None:
    for x in (-20, 20):
        sheet.ellipse((x, -13), 13, 13, (202, 208, 208))
        for dx, dy in ((13, 0), (9.2, 9.2), (0, 13), (-9.2, 9.2)):
            sheet.stroke([(x - dx, -13 - dy), (x + dx, -13 + dy)], 0.6, (140, 146, 150))
        sheet.ring((x, -13), 12, 2.6, _TYRE)
    sheet.strokes([[(-20, -13), (-9, -32), (12, -32), (-2, -13), (-20, -13)], [(-9, -32), (-2, -13)]], 3, look.rgb)
    sheet.stroke([(20, -13), (11, -38)], 3, look.rgb)
    sheet.stroke([(11, -38), (5, -42)], 3, _TYRE)
    sheet.stroke([(-9, -32), (-11, -37)], 2.4, _TYRE)
    sheet.stroke([(-16, -38), (-6, -37)], 4, (90, 56, 34))
    sheet.ellipse((-2, -13), 4, 4, (92, 96, 102))


def _boat(sheet: Sheet, look: Look) -> None:
    sheet.shadow((0, 2), 36, 4)
    sheet.stroke([(-2, -12), (-2, -72)], 2.4, (112, 78, 46))
    sheet.polygon([(1, -70), (1, -18), (27, -18)], (250, 248, 240))
    sheet.polygon([(-5, -62), (-5, -18), (-24, -18)], (232, 230, 222))
    sheet.polygon([(-34, -14), (34, -14), (24, 2), (-24, 2)], look.rgb)
    sheet.polygon([(-34, -14), (34, -14), (32, -10), (-32, -10)], shade(look.rgb, 0.72))


VEHICLES = {
    "car": Kind(_car, "car", {"color": PAINT}, shadow=(44, 4)),
    "bus": Kind(_bus, "bus", {"color": ("red", "blue", "yellow", "green")}, shadow=(62, 4)),
    "truck": Kind(_truck, "truck", {"color": BASIC}, shadow=(58, 4)),
    "bicycle": Kind(_bicycle, "bicycle", {"color": ("red", "blue", "green", "yellow", "black")}),
    "boat": Kind(_boat, "boat", {"color": ("red", "blue", "green", "white"), "size": SIZES}),
}
