"""Choices among captions as scores, so that a model that only chooses is measured as all others are."""

from collections.abc import Sequence
from itertools import islice

import numpy as np

from twinset.evaluation.answers.both_orders import scores
from twinset.evaluation.examples import Matching, Picture
from twinset.evaluation.features.similarities import Asked, Left, Similarities
from twinset.evaluation.features.store import FeatureStore
from twinset.models.encoders.contract import Chooser, Floats, NotApplicable


class ByChoices(Similarities):
    """A model that is shown an image with both captions of an example, in both orders.

    `evaluation.answers.both_orders.scores` makes scores of what it chooses. Choices are not kept in the store: a scorer
    keeps its own.
    """

    def __init__(self, scorer: Chooser, store: FeatureStore, batch: int) -> None:
        super().__init__(scorer, store, batch)
        self.scorer, self.batch = scorer, batch
        self._window: dict[tuple[bytes, tuple[str, str]], tuple[float, float]] = {}

    def prepare(self, examples: Sequence[Asked]) -> Left:
        asked: dict[bytes, set[tuple[str, str]]] = {}
        for one in examples:
            if not isinstance(one, Matching):
                raise NotApplicable(
                    f"{self.name}: chooses between two captions of an image, which example {one.key} does not ask for; "
                    "name a dual encoder such as open_clip:ViT-B-32:openai, or openai-yesno:MODEL"
                )
            for picture in one.images:
                if (name := self._name_or_none(picture)) is not None:
                    asked.setdefault(name, set()).add(one.captions)
        self._window = {}
        named = self._named(examples, ())
        decoded = self.pictures.decoded(((name, named[name][0]) for name in asked), lambda image: image, 2 * self.batch)
        while some := [*islice(decoded, self.batch)]:
            pairs = [(name, image, two) for name, _, image in some for two in sorted(asked[name])]
            images = [image for _, image, _ in pairs]
            # Both orders in one call: a server is asked for all of them side by side.
            captions = [two for _, _, two in pairs]
            chosen = self.scorer.choose(images * 2, captions + [two[::-1] for two in captions])
            self.passes.done += len(chosen)
            for place, (name, _, two) in enumerate(pairs):
                self._window[name, two] = scores(chosen[place], chosen[len(pairs) + place])
        return self._left_out(examples)

    def matrix(self, images: Sequence[Picture], texts: Sequence[str]) -> Floats:
        first, second = texts
        rows = [self._window[self.pictures.name(picture), (first, second)] for picture in images]
        return np.array(rows, np.float32)

    def gallery(self, query: object) -> Floats:
        """No query comes here: `prepare` refuses them."""
        raise NotApplicable(f"{self.name}: chooses between two captions; it cannot rank a gallery")
