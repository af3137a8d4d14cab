"""What references and targets are sampled from, without those that can never pass.

The released code of GeneCIS samples subject, reference, target and distractor, and begins again until their words are
concrete enough. That keeps 1 in 10 of the triplets of COCO's captions at the threshold of the paper (4.8), 1 in 280 at
4.95, and of some captions none. A relation or pair that can never pass may be left out beforehand without changing the
distribution of what passes, if the others keep the ratios of their chances. The chance of a reference r with subject s
and of a target t with object o is

    P(r, t) = images(s) / sum of images       subject: by its number of images
            * 1 / relations(s)                reference: evenly among the relations of the subject
            * 1 / objects(s)                  object of the target: evenly among those of the subject
            * 1 / relations(s, o)             target: evenly among the relations of subject and object

Of the objects only the choices(r) that can pass are sampled from, so that each has the chance 1 / choices(r) instead of
1 / objects(s). The reference makes up for it: its weight is P's first two factors times choices(r) / objects(s).

Whether an object can pass is known by sums of ratings: ``gain`` is the most that a target with it can add, ``need``
what a reference lacks.
"""

import numpy as np
import polars as pl
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.generators.triplets.draws import U64, below, uniform

SLACK = 1e-6  # of a sum of ratings: sums that come so close are left to the exact test
HALF, SPAN = 32.0, 64.0  # sums of ratings lie between -HALF and HALF
NEVER = -HALF

REFERENCE, OBJECT, TARGET = range(3)  # slots of random numbers

Places = NDArray[np.int64]


class Pool:
    """Relations sorted by subject, then object, then place in the stage; a "pair" is a subject with an object.

    relations: ``row``, ``subject``, ``object``, ``image``, ``rating`` (the sum of its two words') and what else the
    rules gave; ``subject`` and ``pair`` are numbers. pairs: by number, subject, object, and ``start`` and
    ``count`` of their relations. subjects: by number, how many images, relations and pairs they have, the first of
    these, and whether they are eligible to be drawn. funnel: what is left of the captions at each step.
    """

    def __init__(self, relations: pl.DataFrame, min_images: int, funnel: dict[str, int]) -> None:
        """Group relations.

        Args:
            relations: with ``subject`` and ``object`` as words.
            min_images: how many images a subject needs; it needs two objects besides (GeneCIS, as released: 5 images).
            funnel: steps so far.
        """
        self.relations = relations.sort("subject", "object", maintain_order=True).with_columns(
            pl.col("subject").rle_id(),
            pair=pl.struct("subject", "object").rle_id(),
        )
        of_pair = self.relations.group_by("pair", maintain_order=True)
        pairs = of_pair.agg(pl.first("subject", "object"), count=pl.len().cast(pl.Int64))
        self.pairs = pairs.with_columns(start=pl.col("count").cum_sum() - pl.col("count"))
        subjects = self.relations.group_by("subject", maintain_order=True).agg(
            images=pl.col("image").n_unique(),
            relations=pl.len(),
            first=pl.first("pair").cast(pl.Int64),
            pairs=pl.col("pair").n_unique().cast(pl.Int64),
        )
        eligible = (pl.col("images") >= min_images) & (pl.col("pairs") >= 2)
        self.subjects = subjects.with_columns(eligible=eligible)
        drawn = self.subjects.filter("eligible")
        self.funnel = {
            **funnel,
            "subjects": self.subjects.height,
            "eligible subjects": drawn.height,
            "relations of eligible subjects": int(drawn["relations"].sum()),
        }

    def weigh(self, gain: pl.Series, factor: NDArray[np.float64], own: NDArray[np.bool_], need: float) -> None:
        """Find the references that can pass, with their targets.

        Args:
            gain: of each pair.
            factor: of each relation, by which its weight is multiplied.
            own: of each relation, whether a target of its own pair can pass.
            need: what ratings of reference and target must exceed together.

        Raises:
            WrongUse: no reference can pass.
        """
        of_pair, gains = self.pairs["subject"].to_numpy(), gain.to_numpy()
        subject, pair = self.relations["subject"].to_numpy(), self.relations["pair"].to_numpy()
        eligible, images, relations, starts, pairs = (
            self.subjects[name].to_numpy() for name in ("eligible", "images", "relations", "first", "pairs")
        )
        lacking = need - self.relations["rating"].to_numpy()
        self._targets = np.lexsort((gains, of_pair))
        # One ascending number for each pair, subject * 64 + 32 + gain, so that one search serves all references: of
        # the pairs from ``first`` to the end of the subject's, gain > lacking - SLACK. Clipped, it stays among them.
        keys = of_pair[self._targets] * SPAN + (HALF + gains[self._targets])
        wanted = subject * SPAN + np.clip(HALF + lacking - SLACK, 1.0, SPAN - 1)
        first = np.searchsorted(keys, wanted, side="right")
        choices = (starts + pairs)[subject] - first
        # A reference whose only choice is its own pair, which its rules bar, can never pass.
        open_choices = choices - (~own & (gains[pair] > lacking - SLACK))
        self.references: Places = np.flatnonzero(eligible[subject] & (open_choices > 0))
        if not len(self.references):
            raise WrongUse(
                f"no triplet can be mined from these captions: {self.steps}, 0 references with a target that can pass; "
                "give more captions, or lower the threshold, min_images or min_support"
            )
        # The pairs of a reference's targets, as a range of ``targets``, which sorts the pairs of each subject by gain.
        self._first, self._choices = first[self.references], choices[self.references]
        of = subject[self.references]
        # images(s) / relations(s) * choices(r) / objects(s); the sum of images is the same for all.
        chance = images[of] / relations[of] * (self._choices / pairs[of])
        self._cumulative = np.cumsum(chance * factor[self.references])  # sums of the weights up to and with each

    def by_object(self, rating: float = NEVER) -> tuple[pl.Series, pl.DataFrame]:
        """Relations with more than a rating, sorted by object, then subject; and of each pair: where among them those
        with its object start (``place``), how many these are (``len``), and the same of its own (``_own``)."""
        rated = self.relations.with_row_index("relation").filter(pl.col("rating") > rating)
        rated = rated.sort("object", maintain_order=True).with_row_index("place")
        there, own = (rated.group_by(name).agg(pl.min("place"), pl.len()) for name in ("object", "pair"))
        pairs = self.pairs.select("pair", "object").join(there, on="object", how="left", maintain_order="left")
        pairs = pairs.join(own, on="pair", how="left", suffix="_own", maintain_order="left")
        places = pairs.select("place", "len", "place_own", "len_own").fill_null(0).cast(pl.Int64)
        return rated["relation"], places

    @property
    def steps(self) -> str:
        """What is left at each step, for messages."""
        return ", ".join(f"{count} {step}" for step, count in self.funnel.items())

    def sample(self, states: U64) -> tuple[Places, Places, Places]:
        """A place in ``references``, the relation there, and the target, for each state."""
        # The first place whose cumulative weight exceeds u * total has a chance in proportion to its own weight.
        place = np.searchsorted(self._cumulative, uniform(states, REFERENCE) * self._cumulative[-1], side="right")
        np.minimum(place, len(self._cumulative) - 1, out=place)  # the product may round up to the last sum
        pair = self._targets[self._first[place] + below(states, OBJECT, self._choices[place])]
        start, count = (self.pairs[name].to_numpy()[pair] for name in ("start", "count"))
        return place, self.references[place], start + below(states, TARGET, count)
