"""Small things that stand on tables, counters and floors."""

from twinset_demo.canvas import ellipse_outline, shade
from twinset_demo.photos.sheet import BASIC, GLAZE, PATTERNS, SIZES, Kind, Look, Sheet, darker


def _cup(sheet: Sheet, look: Look) -> None:
    sheet.ring((17, -18), 7.5, 4, darker(look))
    sheet.cloth([(-15, -33), (15, -33), (12.5, 0), (-12.5, 0)], look)
    sheet.ellipse((0, -33), 15, 3.8, shade(look.rgb, 0.62))
    sheet.ellipse((0, -32.6), 12.6, 2.6, (92, 54, 34))


def _bowl(sheet: Sheet, look: Look) -> None:
    sheet.box(-11, -3, 11, 0, darker(look))
    sheet.cloth([(-26, -25), (26, -25), (22, -12), (13, -3), (-13, -3), (-22, -12)], look)
    sheet.ellipse((0, -25), 26, 5, shade(look.rgb, 0.66))


def _bottle(sheet: Sheet, look: Look) -> None:
    outline = [(-11, 0), (-11, -36), (-4.5, -48), (-4.5, -60), (4.5, -60), (4.5, -48), (11, -36), (11, 0)]
    sheet.polygon(outline, look.rgb)
    sheet.box(-5.5, -66, 5.5, -59, (226, 196, 120) if look.color != "yellow" else (140, 90, 50))
    sheet.box(-11, -29, 11, -10, (246, 240, 222))
    sheet.box(-11, -22, 11, -17, darker(look))
    sheet.stroke([(-7, -35), (-4, -42)], 1.6, shade(look.rgb, 1.5))


def _vase(sheet: Sheet, look: Look) -> None:
    for x, y in ((-12, -64), (0, -72), (12, -64)):
        sheet.stroke([(0, -38), (x, y)], 2, (70, 140, 62))
        for dx, dy in ((0, -4.4), (4.2, -1.2), (2.6, 3.6), (-2.6, 3.6), (-4.2, -1.2)):
            sheet.ellipse((x + dx, y + dy), 3.4, 3.4, (238, 120, 160))
        sheet.ellipse((x, y), 2.5, 2.5, (250, 220, 80))
    sheet.cloth([(-9, -42), (9, -42), (7, -34), (16, -18), (11, 0), (-11, 0), (-16, -18), (-7, -34)], look)
    sheet.ellipse((0, -42), 9, 2.2, darker(look))


def _potted_plant(sheet: Sheet, look: Look) -> None:
    for x, y, tint in ((-23, -44, 0.8), (23, -44, 0.8), (-14, -60, 1.0), (14, -60, 1.0), (0, -66, 1.15)):
        leaf = shade((58, 142, 66), tint)
        sheet.polygon([(-2, -26), (x * 0.75 - 7, y * 0.75), (x, y), (x * 0.75 + 7, y * 0.75 + 3), (2, -26)], leaf)
    sheet.polygon([(-15, -26), (15, -26), (11, 0), (-11, 0)], (200, 110, 74))
    sheet.box(-17, -29, 17, -23, (172, 88, 58))


def _book(sheet: Sheet, look: Look) -> None:
    if look.state == "open":
        sheet.polygon([(-31, -3), (-25, -24), (25, -24), (31, -3), (0, 1)], look.rgb)
        for side in (-1, 1):
            sheet.polygon([(0, -2), (side * 28, -5), (side * 22.5, -24), (0, -21)], (250, 247, 236))
            sheet.strokes([[(side * 4, y + 0.6), (side * 21, y - 1.4)] for y in (-18, -14, -10)], 1, (130, 130, 136))
        sheet.stroke([(0, -21), (0, -2)], 1.4, (180, 172, 156))
        return
    sheet.polygon([(-26, -9), (-18, -20), (28, -20), (26, -9)], shade(look.rgb, 1.12))
    sheet.box(-26, -9, 26, 0, look.rgb)
    sheet.box(-21, -7, 26.5, -2, (250, 247, 236))
    sheet.stroke([(-8, -15), (14, -15)], 2, (250, 240, 200))


def _apple(sheet: Sheet, look: Look) -> None:
    sheet.ellipses([(x, -15) for x in (-6, 6)], 9.5, 14, look.rgb)
    sheet.ellipse((-8, -19), 2.6, 4, shade(look.rgb, 1.5))
    sheet.stroke([(0, -26), (2, -36)], 2.4, (94, 62, 38))
    sheet.polygon([(2, -31), (9, -37), (15, -34), (8, -30)], (70, 150, 60))


def _banana(sheet: Sheet, look: Look) -> None:
    for lift, tint in ((6.0, 0.86), (0.0, 1.0)):
        upper = [(-29, -27 - lift), (-20, -14 - lift), (-4, -9 - lift), (12, -12 - lift), (24, -24 - lift)]
        lower = [(28, -20 - lift), (18, -5 - lift), (0, 0 - lift), (-18, -4 - lift), (-31, -22 - lift)]
        sheet.polygon([*upper, *lower], shade(look.rgb, tint))
    sheet.stroke([(25, -28), (30, -34)], 4, (112, 82, 40))
    sheet.ellipse((-30, -25), 2.4, 2.6, (90, 66, 36))


def _cake(sheet: Sheet, look: Look) -> None:
    sheet.ellipse((0, -3), 33, 4, (236, 238, 242))
    sheet.box(-26, -28, 26, -4, (214, 164, 104))
    drips = [(20, -15), (13, -21), (6, -15), (-2, -21), (-10, -15), (-18, -21), (-27, -17)]
    sheet.polygon([(-27, -32), (27, -32), (27, -20), *drips], look.rgb)
    for x in (-14, 0, 14):
        sheet.box(x - 1.8, -44, x + 1.8, -31, (240, 240, 250))
        sheet.ellipse((x, -47), 2.2, 3.4, (252, 190, 50))


def _laptop(sheet: Sheet, look: Look) -> None:
    sheet.box(-25, -44, 25, -8, look.rgb)
    sheet.box(-22, -41, 22, -11, (104, 170, 226))
    sheet.strokes([[(-17, y), (right, y)] for y, right in ((-35, 12), (-29, 16), (-23, 6))], 2, (236, 244, 250))
    sheet.polygon([(-25, -8), (25, -8), (32, 0), (-32, 0)], shade(look.rgb, 0.82))
    sheet.polygon([(-21, -6.6), (21, -6.6), (24, -3), (-24, -3)], (60, 62, 68))


def _pizza(sheet: Sheet, look: Look) -> None:
    sheet.ellipse((0, -8), 33, 9, (238, 240, 244))
    sheet.polygon(ellipse_outline((0, -10), 27, 7.4), (206, 140, 66))
    sheet.polygon(ellipse_outline((0, -11), 23.5, 5.8), (248, 208, 96))
    sheet.ellipses(((-13, -11), (-3, -14), (4, -9), (14, -12), (-6, -8)), 4, 1.9, (196, 52, 42))


def _box(sheet: Sheet, look: Look) -> None:
    paper = shade(look.rgb, 1.35)
    sheet.box(-26, -38, 26, 0, paper)
    sheet.polygon([(-26, -38), (-19, -46), (19, -46), (26, -38)], shade(paper, 1.12))
    sheet.box(-4, -38, 4, -22, shade(paper, 0.78))
    sheet.polygon([(-4, -38), (-3, -46), (3, -46), (4, -38)], shade(paper, 0.85))
    sheet.stroke([(-26, -38), (26, -38)], 1, shade(paper, 0.7))


SMALL_THINGS = {
    "cup": Kind(_cup, "cup", {"color": GLAZE, "pattern": PATTERNS}, shadow=(15, 2.5)),
    "bowl": Kind(_bowl, "bowl", {"color": GLAZE, "pattern": PATTERNS}, shadow=(17, 2.5)),
    "bottle": Kind(_bottle, "bottle", {"color": ("green", "brown", "blue", "yellow", "red")}, shadow=(11, 2.5)),
    "vase": Kind(_vase, "vase", {"color": GLAZE, "pattern": PATTERNS}, shadow=(12, 2.5)),
    "plant": Kind(_potted_plant, "potted plant", {"size": SIZES}, shadow=(14, 2.5)),
    "book": Kind(_book, "book", {"color": BASIC, "state": ("open", "closed")}, shadow=(27, 2)),
    "apple": Kind(_apple, "apple", {"color": ("red", "green", "yellow")}, shadow=(12, 2.5)),
    "banana": Kind(_banana, "banana", {"color": ("yellow", "green")}, shadow=(22, 2.5)),
    "cake": Kind(_cake, "cake", {"color": ("pink", "white", "brown")}),
    "laptop": Kind(_laptop, "laptop", {"color": ("gray", "black", "white")}, shadow=(31, 2)),
    "pizza": Kind(_pizza, "pizza"),
    "box": Kind(_box, "cardboard", {"color": ("brown",)}, shadow=(26, 3)),
}
