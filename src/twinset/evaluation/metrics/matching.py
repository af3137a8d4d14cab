"""Figures of matchings: text, image and group score, BiVLC's four finer ones, VALSE's, SugarCrepe's accuracy.

``sIT`` is the score of image I and caption T; image i shows caption i, and nothing but strict ``>`` is right.

    ipos2t   s00 > s01      the right caption for image 0, BiVLC's I_pos2T
    ineg2t   s11 > s10      the right caption for image 1, I_neg2T
    tpos2i   s00 > s10      the right image for caption 0, T_pos2I
    tneg2i   s11 > s01      the right image for caption 1, T_neg2I
    text     ipos2t and ineg2t      Winoground's text score (EqBen 5.1), BiVLC's I2T (its Equation 1)
    image    tpos2i and tneg2i      image score, T2I (Equation 2)
    group    text and image         (Equation 3)
    group_match   s00 + s11 > s01 + s10      the whole assignment (arXiv:2510.07632); by chance right half of the time
    accuracy  s00 > s01, of one image and two captions      SugarCrepe's accuracy, VALSE's acc_r
    p_c, p_f  s00 > threshold, s01 <= threshold             VALSE's released script; acc is their mean, min the lesser

A model that only chooses is asked each comparison by itself, or both images with both captions at once (``pairing``,
with the captions in order and in reverse: EqBen, Table 7). `CHOICES` are 1 where it is right, 0 where it is wrong, 0.5
where its answers in both orders disagree or name nothing, and null where it was not asked.
"""

import numpy as np
from numpy.typing import NDArray

from twinset.evaluation.metrics.row_values import Floats, RowValues, certain
from twinset.evaluation.score_files.opening import Batch

Flags = NDArray[np.bool_]
SCORES = ("s00", "s01", "s10", "s11")
#: Outcomes as BiVLC released them: its files have the first names, its script now writes the second.
RELEASED = (
    ("text_score_i0", "text_score_i1", "image_score_c0", "image_score_c1"),
    ("Ipos_2T", "Ineg_2T", "Tpos_2I", "Tneg_2I"),
)
CORRECT = ("correct",)
FINER = ("ipos2t", "ineg2t", "tpos2i", "tneg2i")
ORDERS = ("order12", "order21")
PAIRING = ("pairing", *ORDERS)
CHOICES = (*FINER, *PAIRING)
#: Columns of `detection`: whether each half is told right.
TOLD = ("natural_text", "synthetic_text", "natural_image", "synthetic_image")
DIRECTIONS = ("text", "image")  # of a change


def equivariance(s00: Floats, s01: Floats, s10: Floats, s11: Floats) -> tuple[Floats, Floats]:
    """EqBen's equivariance scores (Figures 6 and 13) of the change of text and of the change of image, shape (n,) each.

    How unequally a model answers the same change in both directions: what is missing from EqSim v2 (Equation 6),
    s00 - s01 = s11 - s10 and s00 - s10 = s11 - s01. 0 is best. They are in units of the model's scores, so only models
    with one scale, such as fine-tuned ones, compare.
    """
    return (s00 - s01) - (s11 - s10), (s00 - s10) - (s11 - s01)


def of_scores(table: Batch, threshold: float | None, silent: float = np.nan) -> RowValues:
    """From `SCORES`, or from the first two; rows whose last two are null have one image.

    silent: both scores of a row that the model did not answer, which is wrong of caption and foil.
    """
    s00, s01 = (table.numbers(name) for name in SCORES[:2])
    s10, s11 = np.full((2, len(table)), np.nan)
    if {*SCORES} <= table.columns.keys():
        s10, s11 = (table.numbers(name, nullable=True) for name in SCORES[2:])
    single = np.isnan(s10)
    if (halves := single != np.isnan(s11)).any():
        what = "one is null; give both scores, or neither where there is one image"
        raise table.wrong("columns s10 and s11", halves, what)
    finer = [_right(s00, s01), _right(s11, s10), _right(s00, s10), _right(s11, s01)]
    chances = _two_images([_of(~single, finer[0]), *finer[1:]], _group(s00, s01, s10, s11))
    values = certain({**chances, "group_match": _right(s00 + s11, s01 + s10), "accuracy": _of(single, finer[0])})
    strict = dict(values.strict)
    if threshold is not None:
        limits = [table.as_stored(name, threshold) for name in SCORES[:2]]
        answered = (s00 != s01) | (s00 != table.as_stored(SCORES[0], silent))
        caption, foil = _of(single, answered & (s00 > limits[0])), _of(single, answered & (s01 <= limits[1]))
        strict |= {"acc": (caption + foil) / 2, "p_c": caption, "p_f": foil}
    for direction, change in zip(DIRECTIONS, equivariance(s00, s01, s10, s11), strict=True):
        strict[f"mean_equivariance_{direction}"] = np.abs(change)
    return RowValues(strict, values.expected)


def of_choices(table: Batch) -> RowValues:
    """From `CHOICES` with or without `PAIRING`; two answers that disagree are a coin, each comparison's by itself."""
    none = np.full(len(table), np.nan)
    there = [name in table.columns for name in CHOICES]
    choices = np.array([table.numbers(name, True) if has else none for name, has in zip(CHOICES, there, strict=True)])
    asked = ~np.isnan(choices)
    for name, wrong in zip(CHOICES, asked & ~np.isin(choices, (0, 0.5, 1)), strict=True):
        if wrong.any():
            raise table.wrong(f"column {name}", wrong, "is not 1, 0.5 or 0; say which choice is right")
    text, image, pair = asked[1], asked[2], asked[4]
    single = asked[0] & ~(text | image | pair)
    halves = (asked[0] != (text | single)) | (image != asked[3]) | (asked[4:] != pair).any(0)
    if (wrong := halves | ~asked.any(0)).any():
        what = "some are null; a direction needs the choices of both, with one image only ipos2t"
        raise table.wrong("choices", wrong, what)
    finer = [_of(~single, choices[0]), *choices[1:4]]
    values = certain(
        {**_two_images(finer, np.where(pair, choices[4], np.prod(finer, axis=0))), "accuracy": _of(single, choices[0])}
    )
    orders = {name: _of(pair, order == 1) for name, order in zip(ORDERS, choices[5:], strict=True)}
    group = np.where(pair, np.prod([*orders.values()], axis=0), values.strict["group"])
    return RowValues({**values.strict, **orders, "group": group}, values.expected)


def of_outcomes(table: Batch) -> RowValues:
    """From one of `RELEASED`, or `CORRECT`: what is right is known, and no ties."""
    if CORRECT[0] in table.columns:
        return RowValues({"accuracy": table.flags(CORRECT[0]).astype(np.float64)})
    names = next(names for names in RELEASED if {*names} <= table.columns.keys())
    finer = [table.flags(name).astype(np.float64) for name in names]
    return RowValues(_two_images(finer, np.prod(finer, axis=0)))


def _right(right: Floats, wrong: Floats) -> Floats:
    """1 where a score is greater, 1/2 where both tie."""
    return np.heaviside(right - wrong, 0.5)


def _of(asked: Flags, values: Floats | Flags) -> Floats:
    return np.where(asked, values, np.nan)


def _two_images(finer: list[Floats], group: Floats) -> dict[str, Floats]:
    # The two comparisons of a text score share no score, so they are independent; so are those of an image score.
    columns = [finer[0] * finer[1], finer[2] * finer[3], group, *finer]
    return dict(zip((*DIRECTIONS, "group", *FINER), columns, strict=True))


def _group(s00: Floats, s01: Floats, s10: Floats, s11: Floats) -> Floats:
    """Chance that min(s00, s11) > max(s01, s10), if every order of equal scores is as likely as any other.

    If both are one value, which a of s00, s11 and b of s01, s10 have, all a have to come before all b in a random order
    of a + b: a! b! / (a + b)!, which is 1/2 for (1, 1), 1/3 for (1, 2) and (2, 1), 1/6 for (2, 2).
    """
    least, most = np.minimum(s00, s11), np.maximum(s01, s10)
    a, b = np.sum([s00 == least, s11 == least], axis=0), np.sum([s01 == most, s10 == most], axis=0)
    return np.asarray(np.heaviside(least - most, np.array([[0, 0, 0], [0, 1 / 2, 1 / 3], [0, 1 / 3, 1 / 6]])[a, b]))


def detection(
    natural_text: Floats, synthetic_text: Floats, natural_image: Floats, synthetic_image: Floats
) -> RowValues:
    """Percent of captions, and of images, that are told right (BiVLC, Table 4); both halves of a pair count."""
    text, image = (natural_text + synthetic_text) / 2, (natural_image + synthetic_image) / 2
    return RowValues({"text_detection": text, "image_detection": image})
