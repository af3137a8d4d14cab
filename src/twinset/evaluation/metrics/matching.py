"""Figures of matchings: text, image and group score, BiVLC's four finer ones, VALSE's, SugarCrepe's accuracy.

``sIT`` is the score of image I and caption T; image i shows caption i, and nothing but strict ``>`` is right.

    ipos2t   s00 > s01      the right caption for image 0, BiVLC's I_pos2T      released as text_score_i0, Ipos_2T
    ineg2t   s11 > s10      the right caption for image 1, I_neg2T                          text_score_i1, Ineg_2T
    tpos2i   s00 > s10      the right image for caption 0, T_pos2I                          image_score_c0, Tpos_2I
    tneg2i   s11 > s01      the right image for caption 1, T_neg2I                          image_score_c1, Tneg_2I
    text     ipos2t and ineg2t      Winoground's text score (EqBen 5.1), BiVLC's I2T (its Equation 1)
    image    tpos2i and tneg2i      image score, T2I (Equation 2)
    group    text and image         (Equation 3)
    group_match   s00 + s11 > s01 + s10      the whole assignment (arXiv:2510.07632); by chance right half of the time

A model that only chooses is asked each of the four comparisons by itself, or both images with both captions at once:
`CHOICES` are 1 where it is right, 0 where it is wrong, 0.5 where its answers in both orders disagree or name nothing,
and null where it was not asked. Text needs both of its comparisons, image both of its own, group all four or the
question for the whole pairing, of which

    order12  right where the captions are shown in order (EqBen, Table 7, first row)
    order21  right where they are shown in reverse (second row)

Of one image and two captions, caption 0 the true one:

    accuracy  s00 > s01      SugarCrepe's accuracy, VALSE's acc_r
    p_c       s00 > threshold       the caption is said to match (VALSE, its released script)
    p_f       s01 <= threshold      the foil is said not to
    acc       mean of p_c and p_f
    min       the lesser of p_c and p_f
"""

import numpy as np
from numpy.typing import NDArray

from twinset.evaluation.metrics.outcomes import Floats, Outcomes, ScoreKind, code_of, truth_of
from twinset.evaluation.score_files.batch import Batch

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
_BITS = truth_of(14)
_TEXTS, _IMAGES, _PAIR = _BITS[:, 0], _BITS[:, 8], _BITS[:, 9]  # which directions were asked of two images
_TIE, _CAPTION, _FOIL = _BITS[:, 5], _BITS[:, 6], _BITS[:, 7]
_TWO = _TEXTS | _IMAGES | _PAIR
_RIGHT = _BITS[:, 1:5] & np.stack([_TEXTS, _TEXTS, _IMAGES, _IMAGES], axis=1)
_TEXT, _IMAGE, _ORDERED = _RIGHT[:, :2].all(1), _RIGHT[:, 2:].all(1), _BITS[:, 10:12] & _PAIR[:, None]
_SUMS, _MATCHED = _BITS[:, 12], _BITS[:, 13]  # whether all four scores are known, and of two images
_ONE_RIGHT = _BITS[:, 1] & ~_TWO
_EVENTS = {
    "rows": _TWO | True,
    "one": ~_TWO,
    "asked text": _TEXTS,
    "asked image": _IMAGES,
    "asked group": (_TEXTS & _IMAGES) | _PAIR,
    "asked pairing": _PAIR,
    "asked match": _SUMS,
    "tie": _TIE,
    "text": _TEXT,
    "image": _IMAGE,
    "group": (_TEXT & _IMAGE) | _ORDERED.all(1),
    **dict(zip(FINER, _RIGHT.T, strict=True)),
    **dict(zip(ORDERS, _ORDERED.T, strict=True)),
    "group_match": _MATCHED & _SUMS,
    "accuracy": _ONE_RIGHT,
    "p_c": _CAPTION & ~_TWO,
    "p_f": _FOIL & ~_TWO,
}
#: Of which rows each figure is a share; all others of those with one image.
_BELOW = {
    **dict.fromkeys(("text", *FINER[:2]), "asked text"),
    **dict.fromkeys(("image", *FINER[2:]), "asked image"),
    "group": "asked group",
    **dict.fromkeys(ORDERS, "asked pairing"),
    "group_match": "asked match",
}


DIRECTIONS = ("text", "image")  # of a change


def equivariance(s00: Floats, s01: Floats, s10: Floats, s11: Floats) -> tuple[Floats, Floats]:
    """EqBen's equivariance scores (Figures 6 and 13) of the change of text and of the change of image, shape (n,) each.

    How unequally a model answers the same change in both directions: what is missing from EqSim v2 (Equation 6),
    s00 - s01 = s11 - s10 and s00 - s10 = s11 - s01. 0 is best. They are in units of the model's scores, so only models
    with one scale, such as fine-tuned ones, compare.
    """
    return (s00 - s01) - (s11 - s10), (s00 - s10) - (s11 - s01)


class Matchings(ScoreKind):
    """Which caption belongs to which image, from scores or from outcomes.

    Args:
        columns: of the table: `SCORES` or the first two of them, one of `RELEASED`, `CORRECT`, or `CHOICES` with or
            without `PAIRING`.
        threshold: score above which image and caption are said to match; None: VALSE's p_c, p_f, acc, min are left out.
    """

    events = tuple(_EVENTS)
    below = ("rows", "one", "asked text", "asked image", "asked group", "asked pairing", "asked match")
    optional = below[2:]
    truth = np.stack([*_EVENTS.values()], axis=1).astype(np.uint8)

    def __init__(self, columns: tuple[str, ...], threshold: float | None = None) -> None:
        self.columns, self.threshold = columns, threshold
        self.scored, self.chosen = columns[0] in SCORES, columns[0] == FINER[0]
        self.means = ("mean_equivariance_text", "mean_equivariance_image") if columns == SCORES else ()

    def outcomes(self, batch: Batch) -> Outcomes:
        if self.scored:
            return self._of_scores(batch)
        if self.chosen:
            return self._of_choices(batch)
        found = [batch.flags(name) for name in self.columns]
        no = np.zeros(len(batch), bool)
        two = no if len(found) == 1 else ~no
        code = code_of([two, *found, *[no] * (7 - len(found)), two])
        return Outcomes(code, None, np.empty((len(batch), 0)))

    def _of_choices(self, batch: Batch) -> Outcomes:
        found = np.full((len(CHOICES), len(batch)), np.nan)
        for place, name in enumerate(self.columns):
            found[place] = batch.numbers(name, nullable=True)
        asked = ~np.isnan(found)
        if (wrong := asked & ~np.isin(found, (0, 0.5, 1))).any():
            at = int(wrong.any(1).argmax())
            raise batch.wrong(f"column {CHOICES[at]}", wrong[at], "is not 1, 0.5 or 0; say which choice is right")
        text, image, pair = asked[1], asked[2], asked[4]
        one = asked[0] & ~(text | image | pair)
        halves = (asked[0] != (text | one)) | (image != asked[3]) | (asked[4:] != pair).any(0)
        if (wrong_row := halves | ~asked.any(0)).any():
            what = "some are null; a direction needs the choices of both, with one image only ipos2t"
            raise batch.wrong(f"columns {', '.join(self.columns)}", wrong_row, what)
        right, no = found == 1, np.zeros(len(batch), bool)
        code = code_of([text, *right[:4], (found[:5] == 0.5).any(0), no, no, image, pair, *right[5:]])
        expected = self.truth[code].astype(np.float64)
        half = np.nan_to_num(found)
        # Two answers that disagree are taken as a coin, each comparison's by itself.
        for name, chance in zip(FINER, half, strict=False):
            expected[:, self.events.index(name)] = chance * ~one
        both = {"text": half[0] * half[1] * text, "image": half[2] * half[3] * image}
        both["group"] = np.where(pair, half[4], both["text"] * both["image"])
        for name, chance in (both | {"accuracy": half[0] * one}).items():
            expected[:, self.events.index(name)] = chance
        return Outcomes(code, expected, np.empty((len(batch), 0)))

    def _of_scores(self, batch: Batch) -> Outcomes:
        s00, s01 = (batch.numbers(name) for name in SCORES[:2])
        if len(self.columns) == 2:
            s10 = s11 = np.full(len(batch), np.nan)
        else:
            s10, s11 = (batch.numbers(name, nullable=True) for name in SCORES[2:])
        two = ~np.isnan(s10)
        if (halves := two == np.isnan(s11)).any():
            what = "one is null; give both scores, or neither where there is one image"
            raise batch.wrong("columns s10 and s11", halves, what)
        # NaN, where there is no second image, compares as false.
        pairs = ((s00, s01), (s11, s10), (s00, s10), (s11, s01))
        right = [right > wrong for right, wrong in pairs]
        ties = [right == wrong for right, wrong in pairs]
        # The sum of two float32 is exact in float64; numbers of a CSV have other bits there than in a table of float32.
        single = [score.astype(np.float32).astype(np.float64) for score in (s00, s01, s10, s11)]
        right_sum, wrong_sum = single[0] + single[3], single[1] + single[2]
        ties.append(right_sum == wrong_sum)
        no = np.zeros(len(batch), bool)
        caption, foil = (no, no) if self.threshold is None else (s00 > self.threshold, s01 <= self.threshold)
        facts = [two, *right, np.any(ties, axis=0), caption, foil, two, no, no, no, two, right_sum > wrong_sum]
        code = code_of(facts)
        expected = self.truth[code].astype(np.float64)
        expected[:, self.events.index("group_match")] += 0.5 * ties.pop()
        self._expect(expected, np.array(right), np.array(ties), np.stack([s00, s01, s10, s11]), two)
        numbers = np.stack(equivariance(s00, s01, s10, s11), axis=1) if self.means else np.empty((len(batch), 0))
        return Outcomes(code, expected, np.abs(numbers))

    def _expect(self, expected: Floats, right: Flags, ties: Flags, scores: Floats, two: Flags) -> None:
        """Fill in the probabilities of events where scores tie and equal scores are put in random order.

        Every order of equal scores is as likely as any other, as if tiny independent noise were added to each score.
        """
        at = {name: column for column, name in enumerate(self.events)}
        # A comparison: 1 where right, 1/2 where tied. The two of a text score share no score, so they are independent;
        # so are the two of an image score.
        half = right + 0.5 * ties
        for name, chance in zip(FINER, half, strict=True):
            expected[:, at[name]] = chance * two
        expected[:, at["text"]] = half[0] * half[1] * two
        expected[:, at["image"]] = half[2] * half[3] * two
        expected[:, at["accuracy"]] = half[0] * ~two
        # Group: right iff min(s00, s11) > max(s01, s10). If both are one value v, which a of s00, s11 and b of s01, s10
        # have, then all a have to come before all b in a random order of a + b: a! b! / (a + b)!, which is 1/2 for
        # (1, 1), 1/3 for (1, 2) and (2, 1), 1/6 for (2, 2). The four comparisons are not independent.
        least, most = np.minimum(scores[0], scores[3]), np.maximum(scores[1], scores[2])
        a = (scores[[0, 3]] == least).sum(0)
        b = (scores[[1, 2]] == most).sum(0)
        chance = np.array([[0.0, 0.0, 0.0], [0.0, 1 / 2, 1 / 3], [0.0, 1 / 3, 1 / 6]])[a, b]
        expected[:, at["group"]] = np.where(least > most, 1.0, np.where(least == most, chance, 0.0)) * two

    def names(self, sums: Floats) -> tuple[str, ...]:
        two = tuple(
            name for name in ("text", "image", "group", *FINER, "group_match", *ORDERS) if sums[self._below(name)]
        )
        one: tuple[str, ...] = ()
        if sums[self.events.index("one")]:
            one = ("accuracy",) if self.threshold is None else ("accuracy", "acc", "p_c", "p_f", "min")
        return two + one

    def main(self, sums: Floats) -> tuple[str, ...]:
        return tuple(name for name in self.names(sums) if name in ("text", "image", "group", "accuracy"))

    def share(self, name: str) -> tuple[str, str] | None:
        if name in ("acc", "min"):
            return None
        return name, _BELOW.get(name, "one")

    def _below(self, name: str) -> int:
        return self.events.index(_BELOW[name])

    def figure(self, name: str, sums: Floats) -> Floats:
        if name in ("acc", "min"):
            both = np.stack([self.figure("p_c", sums), self.figure("p_f", sums)])
            return np.asarray(both.mean(0) if name == "acc" else both.min(0), np.float64)
        return super().figure(name, sums)

    def has_expected(self, name: str) -> bool:
        return (self.scored or self.chosen) and name not in ("acc", "p_c", "p_f", "min", *ORDERS)

    def tied(self, sums: Floats) -> float | None:
        return float(sums[self.events.index("tie")]) if self.scored or self.chosen else None
