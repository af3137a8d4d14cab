"""Images that people put in order, asked of models (EqBen, Figures 1 and 7)."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from twinset.contracts.errors import WrongUse
from twinset.contracts.recipe import recipe_from_json
from twinset.evaluation.benchmarks.reader import Item, Reader
from twinset.evaluation.examples import Picture, Query
from twinset.generators.decisions.question import TaskCandidate, decision_of, planned_tasks
from twinset.generators.decisions.source import picture_of
from twinset.shards.finished_stage import FinishedStage, earlier_stage
from twinset.shards.records import planned_stage, stages_in
from twinset.shards.storage.layout import recipe as recipe_file
from twinset.shards.storage.store import Store
from twinset.shards.storage.tar_reader import BrokenTar
from twinset_extras.image_rankings import ImageRankings, RankImages, places_of, query_of

KIND = "image-rankings"


class Rankings(Reader):
    """Stages of `image-rankings` below OUT, a subset each. The target is the image that people put first."""

    name = "rankings"
    title = "Images in people's order"
    citation = "https://arxiv.org/abs/2303.14465"
    licence = "of the images"
    expects = "a finished stage of image-rankings, OUT/_stages/NAME"
    obtained = "`twinset build` plans it, and `twinset review OUT` asks people"
    metrics = ("ranking",)

    def __init__(self, data: Path | str, subsets: Sequence[str] = ()) -> None:
        self.store = Store(str(data))
        super().__init__(data, subsets)

    def found(self) -> Sequence[str]:
        return [*self._homes()]

    def _homes(self) -> dict[str, str]:
        asking = (home for home in stages_in(self.store) if self._kind(home) == KIND)
        return {home.rpartition("/")[2]: home for home in asking}

    def _kind(self, home: str) -> object:
        return planned_stage(self.store, home).facts.get("generator", {}).get("kind")

    def digest(self) -> str:
        """sha256 over what people decided, with the images that they saw."""
        homes = self._homes()
        return self.digest_of({subset: FinishedStage(self.store, homes[subset]).digest for subset in self.subsets})

    def items(self, subset: str) -> Iterator[Item]:
        home = self._homes()[subset]
        recipe = recipe_from_json(self.store.read(recipe_file(home)))
        source = recipe[subset].source
        assert isinstance(source, ImageRankings)
        pictured = earlier_stage(self.store, recipe, source.queries)
        for task in planned_tasks(self.store, home):
            yield _asked(subset, task, pictured)


def _asked(subset: str, task: TaskCandidate, pictured: FinishedStage) -> Query:
    layout = RankImages().layout(task)
    pictures = [
        Picture(f"{pictured.where}/{name}", partial(_read, pictured, task, n)) for n, name in enumerate(task.images)
    ]
    order = places_of(task, decision_of(task).choice)
    return Query(
        key=task.key,
        subset=subset,
        group=task.subject,
        category=query_of(task),
        image=pictures[layout.images[0]] if layout.images else None,
        text=task.texts[0],
        gallery=pictures[len(layout.images) :],
        targets=frozenset({order.index(0)}),
        order=tuple(order),
    )


def _read(pictured: FinishedStage, task: TaskCandidate, number: int) -> bytes:
    try:
        return picture_of(pictured, task, number)
    except BrokenTar as error:
        raise WrongUse(str(error)) from error
