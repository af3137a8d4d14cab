"""The rules of GeneCIS: `PublishedRules` as its code has them, `StrictRules` as its paper (sections 5.2 and 6.2).

The strict ones make no pairs that teach the wrong thing. Their relations are those of `generators.triplets.pool`. All
four words of reference and target are rated, and their mean exceeds the threshold. Both subjects are singular, or both
plural. No caption of the reference's photo has the target's object in it, in whatever sentence and under whatever name
(`generators.triplets.captions`), so that it never satisfies the condition: object and photo differ always. What the
captions leave out is estimated (`generators.triplets.captions`): no target has an object that the reference may well
show unsaid. Where this can be estimated, and the target's photo has several captions, two of them name the subject and
two the object, under whatever name, so that an error in one caption makes no condition. Where it cannot, no target has
an object that is worn, nor a place where the reference's relation does not say one, which the reference may show
unsaid. No caption of the distractor's
photo has the target's subject in it: it would be as right as the target. The distractor's own two words pass the
threshold too, which keeps out pronouns: they may stand for the target's subject.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.generators.triplets.captions import RELIABLE
from twinset.generators.triplets.draws import NONE, U64, Bools, Codes, Floats, below, numbered, uniform
from twinset.generators.triplets.graphs import CLASSES, PHRASES
from twinset.generators.triplets.pool import Pool
from twinset.generators.triplets.proposals import NEVER, Proposals, References, nothing

DRAWS = 101  # of a target, the last of which is taken as it is
PUBLISHED_WORDS = 6
LATE, PUBLISHED_DISTRACTOR = 3, 4  # slots of random numbers
CERTAIN = 1e-9
ROUNDING = 1e-9  # of a sum of ratings: one that is the threshold's may round to more
NEGLIGIBLE = 1e-9  # a chance; references that only so can pass are left out


class PublishedRules:
    """Samples with the published procedure's distribution, exactly, in a fraction of its draws.

    These are the rules of GeneCIS as its released code has them, weaknesses too. Target and reference differ in object
    and image, but after 101 draws whatever came last is taken. The distractor is any relation with the target's object:
    of the reference's image, of the target's, or the target itself. The score is the mean rating of six words, subject
    and object of all three, where an unrated word counts as -1.

    Let p be the chance of a target t in one draw, and q the chance that one draw is *alike*, which is that its object
    or its image is the reference's. Up to n = 101 targets are drawn until one is not alike, and the last is taken as it
    is. So t is the outcome with the chance

        t not alike:    p * (1 + q + ... + q^(n-1)) = p * a      some alike ones, then t;  a = (1 - q^n) / (1 - q)
        t alike:        p * q^(n-1)                 = p * a * l  n - 1 alike ones, then t; l = q^(n-1) / a

    Here one target is proposed, with p. The factor a depends on the reference alone and is multiplied into its weight;
    a target that is alike is accepted with the chance l.
    """

    def __init__(self, pool: Pool, threshold: float) -> None:
        """Raises `WrongUse` when nothing can pass."""
        self.pool = pool
        self.threshold = threshold
        rating = pool.subject_rating + pool.object_rating
        # A triplet passes when the ratings of reference (rs + ro), target (ts + to) and distractor (ds + do) sum up to
        # more than 6 * threshold. The distractor has the target's object, do = to. So with the best distractor, a
        # target's pair adds at most gain = (ts + to) + to + max ds, where a reference needs 6 * threshold - (rs + ro).
        most = np.maximum.reduceat(pool.subject_rating[pool.by_object], pool.object_start)  # max ds of each object
        gain = (rating + pool.object_rating)[pool.start] + most[pool.object]
        q = _chance_alike(pool)
        with np.errstate(divide="ignore", invalid="ignore"):
            a = np.where(1 - q > CERTAIN, (1 - _power(q, DRAWS)) / (1 - q), DRAWS)  # its limit for q = 1 is n
        late = _power(q, DRAWS - 1) / a
        own, late32 = late > NEGLIGIBLE, late.astype(np.float32)
        del rating, q, late  # a number of each relation, of which there may be tens of millions
        self.references = References(pool, gain, a, own, PUBLISHED_WORDS, threshold, -ROUNDING)
        self._late = late32[self.references.relation]

    def propose(self, states: U64) -> Proposals:
        """One draw of a triplet a state."""
        pool = self.pool
        place, reference, pair, target = self.references.sample(states)
        alike = (pool.pair[reference] == pair) | (pool.image[reference] == pool.image[target])
        passes = ~alike | (uniform(states, LATE) < self._late[place])
        object_ = pool.object[pair]
        distractor = pool.by_object[
            pool.object_start[object_] + below(states, PUBLISHED_DISTRACTOR, pool.object_count[object_])
        ]
        total = np.zeros(len(reference))  # added up in the order in which numpy adds the ratings of one triplet
        for relation in (reference, target, distractor):
            total += pool.subject_rating[relation]
            total += pool.object_rating[relation]
        mean = total / PUBLISHED_WORDS
        return Proposals(passes & (mean > self.threshold), reference, target, distractor, mean)


def _power(base: Floats, exponent: int) -> Floats:
    """By squaring: base^101 = base^64 * base^32 * base^4 * base. numpy's ``**`` may round
    differently on another processor."""
    result = np.ones_like(base)
    while exponent:
        if exponent & 1:
            result = result * base
        base, exponent = base * base, exponent >> 1
    return result


def _chance_alike(pool: Pool) -> Floats:
    """q of each relation as a reference: the chance that a target drawn for it has its object or its image.

    One of the subject's k objects is drawn evenly, then one of its relations evenly. The reference's own object always
    counts; of any other, the share of its relations that are of the reference's image:

        q = (1 + sum over other objects o of n(o, image) / n(o)) / k
    """
    share = 1.0 / pool.count[pool.pair]  # 1 / n(o), of each relation
    # Summed over the relations of subject and image, the shares are the sum over all objects; over those of pair and
    # image, the term of the reference's own object.
    chance = 1 + _summed(pool.subject[pool.pair].astype(np.int64) << 32 | pool.image, share)
    chance -= _summed(pool.pair.astype(np.int64) << 32 | pool.image, share)
    chance /= pool.pairs_count[pool.subject[pool.pair]]
    return np.minimum(chance, 1.0, out=chance)


def _summed(keys: NDArray[np.int64], values: Floats) -> Floats:
    """Of each key, the sum of the values of all that equal it."""
    number = numbered(keys)
    return np.asarray(np.bincount(number, values)[number])


WORDS = 4
Rule = Callable[[NDArray[np.int64]], Bools]
DISTRACTOR = 3  # slot of random numbers
EXACT = 1e-9  # sums that differ by less are equal: ratings have two decimals


class StrictRules:
    """Draws as the published procedure's first ones, of which every one that breaks a rule is drawn again.

    reliable: of each pair of the pool, whether it may be a target for what captions leave out. estimated: whether this
    is known at all; where it is not, only what is worn is unreliable.
    """

    def __init__(self, pool: Pool, threshold: float, distractors: bool, max_unsaid: float) -> None:
        """Raises `WrongUse` when nothing can pass.

        Args:
            pool: relations of the strict rules, which have facts.
            threshold: that the mean rating (1 to 5) of a triplet's four words must exceed.
            distractors: whether each triplet needs one.
            max_unsaid: as `generators.triplets.source.Triplets`.
        """
        if pool.relations.facts is None:
            raise ValueError("a pool of the strict rules has facts")
        self.pool, self._facts = pool, pool.relations.facts
        self.threshold = threshold
        self.distractors = distractors
        spoken, words = self._facts.spoken, pool.relations
        self.estimated = spoken.mentions is not None
        self._guarded = not self.estimated and max_unsaid < 1
        # Of each relation: whether its object is worn, and whether it says where its subject is.
        worn = np.array([word.lower().rpartition(" ")[2] in CLASSES["worn"] for word in words.words])
        places = np.array([_says_where(word.lower()) for word in words.words])
        self._worn = worn[words.object_lemma]
        self._placed = places[words.predicate_lemma] & ~self._worn
        # A few photos may have captions of one fact each, which need not repeat each other.
        self._confirmed = np.ones(len(pool), dtype=np.bool_)
        if self.estimated:
            for lemma in (words.subject_lemma, words.object_lemma):
                self._confirmed &= spoken.confirms(pool.image, lemma[pool.row])
        self._rating = pool.subject_rating + pool.object_rating
        # A triplet passes when the ratings of reference and target, two words each, sum up to more than 4 * threshold.
        gain = np.maximum.reduceat(self._rating, pool.start)
        if distractors:
            self._others = _OtherSubjects(pool, self._rating > 2 * threshold + EXACT)
            gain = np.where(self._others.count > 0, gain, NEVER)
        self.reliable = self._said_reliably(max_unsaid)
        gain = np.where(self.reliable, gain, NEVER)
        alike = np.zeros(len(pool), dtype=np.bool_)
        self.references = References(pool, gain, np.ones(len(pool)), alike, WORDS, threshold, EXACT)

    def propose(self, states: U64) -> Proposals:
        """One draw of a triplet a state; `NONE` stands for the distractor where none is asked for."""
        reference, target, distractor, total = self._draw(states)
        passing = np.arange(len(reference))
        for meets in self._rules(reference, target, distractor, total).values():  # each sees what passed those before
            passing = passing[meets(passing)]
        passes = np.zeros(len(reference), dtype=np.bool_)
        passes[passing] = True
        return Proposals(passes, reference, target, distractor, total / WORDS)

    def refused(self, states: U64) -> dict[str, int]:
        """Of one draw a state, how many each rule refuses, whatever the others say of them."""
        drawn = self._draw(states)
        every = np.arange(len(states))
        return {rule: int((~meets(every)).sum()) for rule, meets in self._rules(*drawn).items()}

    def _said_reliably(self, max_unsaid: float) -> Bools:
        """Of each pair, whether captions that leave out its object hardly ever stand for a photo that shows it. Raises
        `WrongUse` when no pair of a subject that can be drawn is so."""
        pool, spoken, relations = self.pool, self._facts.spoken, self.pool.relations
        if max_unsaid == 1:
            return np.ones(len(pool.start), dtype=np.bool_)
        first = pool.row[pool.start]
        if spoken.mentions is None:
            reliable = ~self._worn[first]
        else:
            subject, object_ = (spoken.noun[side[first]] for side in (relations.subject_lemma, relations.object_lemma))
            unsaid = spoken.mentions.unsaid(subject, object_)
            reliable = (unsaid <= max_unsaid) & (spoken.mentions.odds[object_] <= RELIABLE)
        if not (reliable & pool.eligible[pool.subject]).any():
            raise WrongUse(
                f"{nothing(pool)}; of each of their objects, captions leave out too much to tell which images do not "
                f"show it (max_unsaid {max_unsaid:g}): give more captions, or raise max_unsaid"
            )
        return np.asarray(reliable)

    def _draw(self, states: U64) -> tuple[Codes, Codes, Codes, Floats]:
        """Reference, target and distractor of each state, and the sum of the ratings of the first two."""
        _, reference, pair, target = self.references.sample(states)
        distractor = np.full(len(reference), NONE, dtype=np.int32)
        if self.distractors:
            distractor = self._others.at(pair, below(states, DISTRACTOR, self._others.count[pair]))
        return reference, target, distractor, self._rating[reference] + self._rating[target]

    def _rules(self, reference: Codes, target: Codes, distractor: Codes, total: Floats) -> dict[str, Rule]:
        """The rules by name, the fast ones first: each says of some of these draws whether they meet it."""
        image, row, spoken = self.pool.image, self.pool.row, self._facts.spoken
        number, words = self._facts.number, self.pool.relations

        def unsaid(of: Codes, lemmas: Codes) -> Rule:
            return lambda at: ~spoken.says(image[of[at]], lemmas[row[target[at]]])

        rules: dict[str, Rule] = {
            "concreteness": lambda at: np.asarray(total[at] > WORDS * self.threshold + EXACT),
            "one grammatical number": lambda at: number[row[reference[at]]] == number[row[target[at]]],
            "both words said by two captions of the target": lambda at: self._confirmed[target[at]],
            "object unsaid of the reference": unsaid(reference, words.object_lemma),
        }
        if self._guarded:
            placed, unplaced = self._placed[row[reference]], ~self._placed[row[target]]
            rules["a place only where the reference has one"] = lambda at: placed[at] | unplaced[at]
        if self.distractors:
            rules["subject unsaid of the distractor"] = unsaid(distractor, words.subject_lemma)
        return rules


def _says_where(predicate: str) -> bool:
    """Whether a predicate begins or ends with a preposition of a place, or is a phrase of one."""
    first, _, rest = predicate.partition(" ")
    return predicate in PHRASES or not CLASSES["prepositions"].isdisjoint((first, rest))


class _OtherSubjects:
    """For each pair of subject and object: the relations with that object, but not that subject, that may distract,
    drawn evenly without drawing twice.

    count: how many there are, of each pair.
    """

    def __init__(self, pool: Pool, allowed: Bools) -> None:
        """allowed: of each relation of the pool."""
        among = allowed[pool.by_object]
        before = np.concatenate([[0], np.cumsum(among)])  # of each place in by_object: allowed ones that lie before it
        self._relations: Codes = pool.by_object[among]
        self._start = before[pool.object_start[pool.object]]
        own = np.argsort(pool.by_object)[pool.start]  # of each pair: where its relations begin in by_object
        self._own_start, own_end = before[own], before[own + pool.count]
        self._own_count = own_end - self._own_start
        end = before[pool.object_start[pool.object] + pool.object_count[pool.object]]
        self.count = (end - self._start - self._own_count).astype(np.int32)

    def at(self, pair: Codes, number: NDArray[np.int64]) -> Codes:
        """The relation with a number from 0 up to ``count`` of each pair."""
        place = self._start[pair] + number
        place += np.where(place >= self._own_start[pair], self._own_count[pair], 0)  # the pair's own lie together
        found: Codes = self._relations[place]
        return found
