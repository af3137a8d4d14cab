"""Surroundings of the photos: a street, a park, a beach, a farm, a kitchen, a living room, and plain ones."""

from collections.abc import Set

from twinset_demo.canvas import HEIGHT, WIDTH, Colour, shade
from twinset_demo.photos.painter import Painter

_SKIES: tuple[tuple[Colour, Colour], ...] = (
    ((112, 178, 236), (206, 232, 250)),
    ((92, 158, 222), (190, 220, 244)),
    ((150, 196, 232), (236, 240, 240)),
)
_WALLS: tuple[Colour, ...] = ((236, 222, 196), (204, 222, 214), (226, 208, 212), (208, 214, 230))
_GRASS: Colour = (134, 190, 92)


def _sky(painter: Painter, bottom: float, variant: int) -> None:
    upper, lower = _SKIES[variant % len(_SKIES)]
    sheet = painter.fill("sky", "sky-other-merged", 0, bottom, upper, lower)
    for x, y, across in (((variant * 53) % 260 + 30, 16, 22), ((variant * 53 + 140) % 260 + 30, 26, 15)):
        for dx, dy, size in ((-0.6, 2, 0.55), (0.6, 2, 0.6), (0, 0, 0.75)):
            sheet.ellipse((x + dx * across, y + dy), across * size, across * size * 0.45, (250, 252, 254))


def _mountains(painter: Painter, foot: float) -> None:
    sheet = painter.stuff("mountains", "mountain-merged")
    for left, peak, height, tint in ((-30, 50, 62, 0.9), (210, 285, 52, 1.0), (70, 150, 46, 1.05)):
        colour = shade((128, 136, 160), tint)
        sheet.polygon([(left, foot + 4), (peak, foot - height), (2 * peak - left, foot + 4)], colour)
        share = 0.28
        cap = [(peak - share * (peak - left), foot - height * (1 - share)), (peak, foot - height)]
        cap += [(peak + share * (peak - left), foot - height * (1 - share)), (peak, foot - height * 0.8)]
        sheet.polygon(cap, (246, 248, 252))


def _meadow(painter: Painter, top: float) -> None:
    sheet = painter.fill("grass", "grass-merged", top, HEIGHT, _GRASS, shade(_GRASS, 0.86))
    for n in range(26):
        x, y = (n * 97) % 310 + 5, top + 8 + (n * 61) % (HEIGHT - top - 12)
        sheet.stroke([(x - 2, y - 4), (x, y), (x + 2, y - 4)], 1, shade(_GRASS, 0.74))


def street(painter: Painter, variant: int, extras: Set[str]) -> None:
    """Buildings, a pavement before them, and a road."""
    _sky(painter, 142, variant)
    sheet = painter.stuff("building", "building-other-merged")
    paints: tuple[Colour, ...] = ((196, 120, 96), (214, 190, 150), (150, 160, 176), (190, 150, 160), (170, 186, 160))
    for n, (left, right, top) in enumerate(((0, 72, 44), (72, 132, 66), (146, 228, 32), (228, 320, 56))):
        paint = paints[(n + variant) % len(paints)]
        sheet.box(left, top, right, 143, paint)
        sheet.box(left, top, right, top + 5, shade(paint, 0.75))
        for x in range(left + 9, right - 14, 20):
            for y in range(top + 14, 116, 24):
                sheet.box(x, y, x + 11, y + 14, (72, 92, 120) if (x + y + variant) % 3 else (250, 226, 140))
    painter.fill("sidewalk", "pavement-merged", 142, 172, (206, 202, 196), (190, 186, 180))
    sheet = painter.fill("road", "road", 172, HEIGHT, (98, 100, 106), (84, 86, 92))
    sheet.box(0, 172, WIDTH, 174, (150, 148, 144))
    sheet.boxes([(left, 206, left + 30, 209.5) for left in range(-10, WIDTH, 56)], (240, 236, 220))


def park(painter: Painter, variant: int, extras: Set[str]) -> None:
    """Trees beyond a lake, and a lawn before it; extras: mountains, path."""
    _sky(painter, 94, variant)
    if "mountains" in extras:
        _mountains(painter, 90)
    sheet = painter.stuff("trees", "tree-merged")
    for n in range(17):
        x = n * 20 + (variant * 7) % 11 - 4
        green = shade((72, 138, 70), 0.85 + 0.09 * ((n * 5 + variant) % 4))
        sheet.box(x - 1.5, 84, x + 1.5, 95, (104, 74, 46))
        sheet.ellipse((x, 78), 13, 12 + (n * 7 + variant) % 5, green)
    sheet = painter.fill("lake", "water-other", 92, 130, (110, 172, 214), (84, 150, 200))
    for n in range(9):
        x, y = (n * 71 + variant * 13) % 300, 97 + (n * 17) % 28
        sheet.stroke([(x, y), (x + 22, y)], 1, (150, 202, 232))
    _meadow(painter, 130)
    if "path" in extras:
        sheet = painter.stuff("path", "dirt-merged")
        sheet.polygon([(206, 130), (222, 130), (258, 180), (240, 240), (172, 240), (222, 184)], (206, 176, 128))


def beach(painter: Painter, variant: int, extras: Set[str]) -> None:
    """Sea and sand; extras: mountains on the horizon."""
    _sky(painter, 84, variant)
    if "mountains" in extras:
        _mountains(painter, 84)
    sheet = painter.fill("sea", "sea", 84, 136, (44, 116, 178), (96, 182, 206))
    for n in range(11):
        x, y = (n * 83 + variant * 29) % 300, 92 + (n * 19) % 36
        sheet.stroke([(x, y), (x + 7, y - 2), (x + 14, y), (x + 21, y - 2), (x + 28, y)], 1.2, (206, 234, 242))
    sheet = painter.fill("sand", "sand", 136, HEIGHT, (238, 214, 160), (226, 196, 138))
    sheet.box(0, 136, WIDTH, 138, (250, 250, 244))
    sheet.ellipses([((n * 89) % 316, 146 + (n * 37) % 92) for n in range(30)], 1.2, 0.8, (204, 172, 116))


def farm(painter: Painter, variant: int, extras: Set[str]) -> None:
    """A meadow; extras: mountains, a dirt road in front."""
    _sky(painter, 92, variant)
    if "mountains" in extras:
        _mountains(painter, 90)
    _meadow(painter, 90)
    if "road" in extras:
        sheet = painter.fill("road", "dirt-merged", 200, 236, (204, 170, 120), (188, 152, 104))
        sheet.strokes([[(0, y), (WIDTH, y)] for y in (210, 226)], 2.4, (170, 134, 88))


def kitchen(painter: Painter, variant: int, extras: Set[str]) -> None:
    """Cabinets below and above a counter; extras: a wooden floor instead of tiles."""
    wall = _WALLS[variant % len(_WALLS)]
    sheet = painter.fill("wall", "wall-other-merged", 0, 214, shade(wall, 1.03), wall)
    sheet.strokes([[(0, y), (WIDTH, y)] for y in range(98, 130, 10)], 0.8, shade(wall, 0.9))
    sheet.strokes([[(x, 98), (x, 128)] for x in range(0, WIDTH, 14)], 0.8, shade(wall, 0.9))
    door: Colour = ((200, 158, 108), (176, 196, 204), (222, 206, 180))[variant % 3]
    sheet = painter.stuff("cabinets", "cabinet-merged")
    boxes = [(2, 0, 50, 48), (52, 0, 100, 48), *((x, 148, x + 48, 214) for x in (1, 51, 101, 151, 201))]
    for left, top, right, bottom in boxes:
        sheet.box(left - 1, top, right + 1, bottom, shade(door, 0.8))
        sheet.box(left, top + 1, right, bottom - 1, door)
        sheet.box(left + 6, top + 7, right - 6, bottom - 7, shade(door, 1.07))
        sheet.box(right - 10, (top + bottom) / 2 - 5, right - 7.5, (top + bottom) / 2 + 5, (96, 96, 100))
    sheet = painter.stuff("counter", "counter")
    sheet.polygon([(0, 128), (250, 128), (254, 142), (0, 142)], (150, 142, 136))
    sheet.box(0, 142, 254, 149, (112, 104, 100))
    if "wood" in extras:
        _planks(painter, 214)
    else:
        sheet = painter.fill("floor", "floor-other-merged", 214, HEIGHT, (206, 204, 200), (190, 188, 186))
        sheet.strokes([[(x + 8, 214), (x - 4, HEIGHT)] for x in range(-20, WIDTH, 32)], 1, (166, 164, 162))
        sheet.stroke([(0, 225), (WIDTH, 225)], 1, (166, 164, 162))


def living_room(painter: Painter, variant: int, extras: Set[str]) -> None:
    """A wall and a wooden floor."""
    wall = _WALLS[(variant + 1) % len(_WALLS)]
    sheet = painter.fill("wall", "wall-other-merged", 0, 164, shade(wall, 1.04), wall)
    sheet.box(0, 157, WIDTH, 164, (246, 244, 238))
    _planks(painter, 164)


def _planks(painter: Painter, top: float) -> None:
    wood: Colour = (192, 142, 92)
    sheet = painter.fill("floor", "floor-wood", top, HEIGHT, wood, shade(wood, 0.9))
    y, row = top, 0
    while y < HEIGHT:
        sheet.stroke([(0, y), (WIDTH, y)], 1, shade(wood, 0.78))
        below = y + 9 + 3 * row
        sheet.strokes([[(x, y), (x, below)] for x in range(row % 3 * 34 - 30, WIDTH, 104)], 1, shade(wood, 0.78))
        y, row = below, row + 1


def snow(painter: Painter, variant: int, extras: Set[str]) -> None:
    """Nothing but snow under the sky."""
    _sky(painter, 112, variant)
    sheet = painter.fill("snow", "snow", 112, HEIGHT, (236, 242, 250), (220, 230, 242))
    for n in range(12):
        x, y = (n * 71 + variant * 31) % 300, 126 + (n * 43) % 106
        sheet.stroke([(x, y), (x + 16, y - 2), (x + 32, y)], 1.4, (204, 216, 234))


def lawn(painter: Painter, variant: int, extras: Set[str]) -> None:
    """Nothing but grass under the sky."""
    _sky(painter, 104, variant)
    _meadow(painter, 104)


def tabletop(painter: Painter, variant: int, extras: Set[str]) -> None:
    """A wooden table before a wall, from near."""
    wall = _WALLS[variant % len(_WALLS)]
    painter.fill("wall", "wall-other-merged", 0, 168, shade(wall, 1.04), wall)
    wood: Colour = (178, 124, 74)
    sheet = painter.fill("table", "table-merged", 168, HEIGHT, shade(wood, 1.1), wood)
    sheet.strokes([[(0, y), (WIDTH, y)] for y in (178, 191, 207)], 1, shade(wood, 0.88))
    sheet.box(0, 226, WIDTH, HEIGHT, shade(wood, 0.72))
