"""Captions that are parsed, and the table of their relations for later stages, such as GeneCIS's triplets."""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from twinset.generators.papers import GENECIS
from twinset.generators.scene_graphs.captions import CAPTION_REASONS
from twinset.generators.scene_graphs.relations import LIBRARIES
from twinset.manifests.errors import WrongUse
from twinset.manifests.locations import Location
from twinset.manifests.source import Need, Place, Reference
from twinset.models.spacy_pipelines import EMBEDDED, check_installed, find_pipeline
from twinset.shards.contracts import Source


def listed(value: Any) -> Any:
    """One location as a list of one."""
    return [value] if isinstance(value, str | Path) else value


class ParsedCaptions(Source):
    """Captions and the pipeline that parses them, for tables made of them.

    captions: files or folders of captions, read in this order (`generators.scene_graphs.caption_sources`).
    pipeline: spaCy's, by name or folder: ``en_captions_sm`` comes with twinset. licence: of the captions.
    """

    captions: Annotated[
        tuple[Annotated[Location, Place("any", "annotations")], ...], BeforeValidator(listed), Field(min_length=1)
    ]
    pipeline: Annotated[str, Place("model", "models")] = Field(default=EMBEDDED, min_length=1)
    licence: str = "the captions stay under the terms of their source"

    makes = "table"
    reference = Reference("captions")  # of any data set: the licence says which
    group = "caption"

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """As `Source.check_inputs`; also what kind of captions there are, and whether the parser is installed."""
        super().check_inputs(key, needs)
        if "annotations" in needs:
            from twinset.generators.scene_graphs.caption_sources import CaptionSources

            try:
                CaptionSources(self.captions)
            except WrongUse as error:
                raise WrongUse(f"{key}.captions: {error}") from error
        if "models" in needs:
            self.check_parser(key)

    def check_parser(self, key: str) -> None:
        """Raise `WrongUse` where the parser is not installed. key: as `check_inputs`."""
        check_installed(key, self.pipeline, *LIBRARIES)


class SceneGraphs(ParsedCaptions):
    """Relations "subject, predicate, object" that a parser reads off captions (GeneCIS, section 5.2).

    confirm: a second pipeline, by name or folder; every relation then says whether that one finds it too.
    """

    kind: Literal["scene-graphs"]
    confirm: Annotated[str, Place("model", "models")] | None = Field(default=None, min_length=1)

    generator = "twinset.generators.scene_graphs.generator:SceneGraphGenerator"
    paper = GENECIS
    verb = "parsed from"
    reasons: ClassVar[Mapping[str, str]] = {
        **CAPTION_REASONS,
        "no-relation": "the parser finds no relation in the caption",
    }

    def check_parser(self, key: str) -> None:
        """As `ParsedCaptions.check_parser`, for both pipelines."""
        super().check_parser(key)
        if self.confirm is not None:
            try:
                find_pipeline(self.confirm)
            except WrongUse as error:
                raise WrongUse(f"{key}.confirm: {error}") from error
            if find_pipeline(self.confirm).digest == find_pipeline(self.pipeline).digest:
                raise WrongUse(
                    f"{key}.confirm: {self.confirm} is the pipeline that reads the relations; name another one, or "
                    "leave confirm out"
                )
