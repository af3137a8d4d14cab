"""A task: what one person is asked once, as it is planned."""

import hashlib
from dataclasses import dataclass
from typing import cast

from twinset.manifests.candidate import Candidate
from twinset.manifests.canonical import canonical_json
from twinset.manifests.plan import plan_file, read_slice
from twinset.shards.finished_stage import FinishedStage
from twinset.shards.records import read_planned
from twinset.shards.storage import layout
from twinset.shards.storage.store import Store

UNSCORED = -1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCandidate(Candidate):
    """A planned task.

    question: its kind, a name of `generators.decisions.questions.QUESTIONS`. texts, images: what is shown; images are
    keys of an earlier stage, or names in a folder of photos. image_tars: where each lies in its stage; empty for a
    photo. image_sha256s: of each image's file; empty for a photo, which is bound by its name.
    subject: key of the negative caption or pair that is asked about; kind_name: its kind, such as ``replace_obj``.
    priority: score of verification, `UNSCORED` without one; higher is asked first. audit: verification dropped it, and
    it is asked all the same, to measure what verification misses. truth: value of the right option where it is known,
    else empty; it never leaves for the page. decision: the JSON of its decision
    (`generators.decisions.question.Decision`); empty until it is made. One that was made before anybody was asked needs
    nobody's answer.
    """

    question: str
    texts: tuple[str, ...]
    images: tuple[str, ...]
    image_tars: tuple[str, ...]
    image_sha256s: tuple[str, ...]
    subject: str
    kind_name: str = ""
    priority: float = UNSCORED
    audit: bool = False
    truth: str = ""
    decision: str = ""

    @property
    def counted_as(self) -> str:
        """As `Candidate.counted_as`: the kind of its subject."""
        return self.kind_name

    @property
    def binding(self) -> str:
        """sha256 (hexadecimal) of what is shown. An answer counts for the binding that it was given for alone, so that
        an image that is made again makes the answers about it stale, and no others."""
        shown = [self.question, self.texts, self.images, self.image_sha256s]
        return hashlib.sha256(canonical_json(shown)).hexdigest()


def tasks_of(earlier: FinishedStage) -> list[TaskCandidate]:
    """All tasks of a finished stage in plan order."""
    return planned_tasks(earlier.store, earlier.home)


def planned_tasks(store: Store, home: str) -> list[TaskCandidate]:
    """All tasks of a planned stage in plan order; raises FileNotFoundError when it is not planned."""
    found: list[TaskCandidate] = []
    for shard in read_planned(store, home):
        file, row_group = plan_file(shard.shard)
        with store.open(layout.plan(home, file)) as stream:
            found += cast(list[TaskCandidate], read_slice(stream, row_group, TaskCandidate))
    return found
