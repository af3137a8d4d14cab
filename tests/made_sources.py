"""Sources and a filter that tests install, as if a package had brought them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, ClassVar, Literal

import pytest

from twinset.contracts import doors
from twinset.contracts.parts import Filter
from twinset.contracts.references import Reference
from twinset.contracts.source import AnnotationFile, MediaFolderPath, SourceSettings

CARDS = Path(__file__).with_name("made_cards")
PAPER = Reference("A Paper", "https://paper.example", "@inproceedings{paper2020, title = {A Paper}}")


class Videos(SourceSettings):
    """A source of pairs that follows a paper."""

    kind: Literal["test-videos"]
    annotations: AnnotationFile
    media: MediaFolderPath
    licence: str = "other: free <b>for</b> tests"

    reference = Reference("Drawn videos", "https://videos.example", "@misc{videos2021, title = {Videos}}")
    paper = PAPER
    group = "video"
    reasons: ClassVar[Mapping[str, str]] = {
        "missing-media": "the video is not in the media folder",
        "unsaid": "pairs without words",
    }
    card_template = CARDS / "videos.md.j2"


class Folder(SourceSettings):
    """A source of pairs that follows no paper and says nothing of itself."""

    kind: Literal["test-folder"]
    media: MediaFolderPath
    licence: str = "other: mine"


class Mined(SourceSettings):
    """A source of triplets, which reports how it mined."""

    kind: Literal["test-mined"]
    captions: tuple[AnnotationFile, ...]
    licence: str = "CC0-1.0 AND other: <b>captions</b>"

    makes = "triplet"
    reference = Reference("Captions", "", "@misc{captions2018, title = {Captions}}")
    paper = PAPER
    group = "subject"
    verb = "mined from"
    reports = ("mining.json",)
    card_template = CARDS / "mined.md.j2"


class Galleries(SourceSettings):
    """A source of templates."""

    kind: Literal["test-galleries"]
    annotations: AnnotationFile
    task: str
    licence: str = "other: free"

    makes = "template"
    paper = PAPER
    group = "reference"
    card_template = CARDS / "galleries.md.j2"


class Scores(SourceSettings):
    """A source of a table."""

    kind: Literal["test-scores"]
    licence: str = "other: mine"

    makes = "table"
    reference = Reference("Somebody's scores")


class Negatives(SourceSettings):
    """A source of text pairs."""

    kind: Literal["test-negatives"]
    annotations: AnnotationFile
    licence: str = "other: free"

    makes = "text-pair"
    paper = PAPER
    group = "image"

    def panels(self, reports: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"words.png": {"words": {1: 2}, "gaps": ([-1.0, 0.0, 1.0], {"before": [3, 5], "after": [3, 3]})}}


class Alike(Filter):
    """A filter, so that there is a reason of one."""

    kind: Literal["test-alike"]

    judges = "captions"
    reasons: ClassVar[Mapping[str, str]] = {"equal-captions": "both captions say the same"}


CLASSES = {
    "twinset.sources": (Videos, Folder, Mined, Galleries, Scores, Negatives),
    "twinset.filters": (Alike,),
}


@contextmanager
def with_test_sources() -> Iterator[None]:
    """Sources and a filter of these tests, as if a package had brought them."""

    @cache
    def installed(group: str) -> dict[str, EntryPoint]:
        points = {point.name: point for point in entry_points(group=group)}
        for part in CLASSES.get(group, ()):
            kind = str(part.model_fields["kind"].annotation.__args__[0])  # type: ignore[union-attr]
            points[kind] = EntryPoint(kind, f"tests.made_sources:{part.__name__}", group)
        return points

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(doors, "installed", installed)
        yield


@pytest.fixture(scope="module", autouse=True)
def test_sources() -> Iterator[None]:
    with with_test_sources():
        yield
