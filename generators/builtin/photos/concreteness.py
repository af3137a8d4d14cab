"""Concreteness of the words of the stills' captions, from 1 to 5: made up for this little world, rated by nobody."""

from __future__ import annotations

from collections.abc import Iterator

_RATINGS: dict[float, tuple[str, ...]] = {
    5.0: ("apple", "banana", "ball", "bicycle", "car", "cat", "chair", "cup", "dog", "horse", "house", "tree"),
    4.96: ("bird", "boat", "book", "bottle", "bus", "cow", "pizza", "rock", "sheep", "truck", "umbrella"),
    4.93: ("backpack", "bed", "bench", "bowl", "box", "cake", "clock", "couch", "flower", "flowers", "table", "window"),
    4.9: ("dress", "grass", "lamp", "laptop", "oven", "pillow", "refrigerator", "rug", "sand", "shirt", "sink", "vase"),
    4.87: ("curtain", "fence", "kite", "microwave", "plant", "snow", "suitcase", "surfboard", "television", "towel"),
    4.84: ("fire hydrant", "stop sign", "teddy bear", "traffic light", "man", "woman", "lake", "wall"),
    4.72: ("building", "floor", "path", "road", "sidewalk"),
    4.6: ("counter", "sea"),
    4.45: ("sky",),
    3.4: ("front",),
}


def ratings() -> Iterator[tuple[str, float]]:
    """Each word with its rating, the highest first."""
    for rating, words in _RATINGS.items():
        for word in words:
            yield word, rating
