"""A second caption that says the same, beside each negative caption of a table (SugarCrepe++)."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar, Literal, cast

import pyarrow as pa
from pydantic import SerializeAsAny

from twinset.generators.image_files import UnusableImage
from twinset.generators.negative_captions.asking import PromptedGenerator, PromptedSource, rejected
from twinset.generators.negative_captions.changes import unchanged
from twinset.generators.negative_captions.instructions import PARAPHRASE, Judged
from twinset.generators.negative_captions.kinds import COLUMNS, ScoredCaption, scored_schema, scores_in, with_scores
from twinset.manifests.candidate import Candidate
from twinset.manifests.doors import OfKind
from twinset.manifests.licences.terms import TERMS, Terms
from twinset.manifests.references import Reference, bibtex, reasons_beside
from twinset.manifests.source import StageName
from twinset.models.language_models.settings import LANGUAGE_MODELS, LanguageModelSettings
from twinset.shards.kinds.samples import Rejected, TableRows
from twinset.shards.kinds.text_pair import CAPTION2, TEXT_SCORES

SUGARCREPE_PLUS = Reference("SugarCrepe++", "https://arxiv.org/abs/2406.11171", bibtex("dumpala2024sugarcrepe"))


class SecondCaptions(PromptedSource):
    """Negative captions with ``caption2``, the true caption in other words, written by a language model.

    Each caption is asked for once; negatives whose caption gets none are rejected.

    negatives: the stage of negative captions, or the folder of a finished one; twinset's own scores are taken along.
    engine: what writes. prompts, photos: as `PromptedSource`; the kind is ``paraphrase``. licence: of the captions.
    """

    kind: Literal["second-captions"]
    negatives: StageName
    engine: Annotated[SerializeAsAny[LanguageModelSettings], OfKind(LANGUAGE_MODELS)]
    licence: str = ""

    generator = "twinset.generators.negative_captions.second_captions:SecondCaptionGenerator"
    makes = "table"
    paraphrases = True
    reference = Reference("captions")  # of any data set: the licence says which
    paper = SUGARCREPE_PLUS
    group = "caption"
    verb = "written for"
    reasons: ClassVar[Mapping[str, str]] = {**PromptedSource.reasons, **reasons_beside(__file__, "second-captions")}

    @property
    def asked_for(self) -> Sequence[str]:
        return (PARAPHRASE,)


class SecondCaptionGenerator(PromptedGenerator[SecondCaptions]):
    """Plans a row for each negative, with the identity that it has in the earlier table."""

    version = 2
    isolation = "process"  # torch's number of threads is its process's
    libraries = ("numpy",)
    candidate = _candidate = with_scores(ScoredCaption, TEXT_SCORES)
    columns = pa.schema([*scored_schema(TEXT_SCORES), pa.field(CAPTION2, pa.string(), nullable=False)])

    def plan(self) -> Iterator[ScoredCaption]:
        """Rows in the order of the earlier table, which is read a row group at a time."""
        scores = [name for name in TEXT_SCORES if name in self.earlier.columns()]
        for batch in self.earlier.batches(["identity", "group", *TERMS, *COLUMNS.names, *scores]):
            for row in batch.to_pylist():
                identity, shows = json.loads(row.pop("identity")), (Terms.taken(row),)
                identified = self.identified(*identity, group=row.pop("group"), shows=shows)
                yield self._candidate(**identified, **{**row, **scores_in(row, TEXT_SCORES)})

    def make(self, candidates: Sequence[Candidate]) -> Iterator[TableRows | Rejected]:
        """As of negative captions; random numbers depend on the caption, whose negatives share the second one."""
        planned = cast(Sequence[ScoredCaption], candidates)
        written = self.written([PARAPHRASE] * len(planned), planned, [one.caption for one in planned])
        for one, made in zip(planned, written, strict=True):
            if not isinstance(made, UnusableImage) and made.negative and unchanged(one.negative_caption, made.negative):
                made = Judged(reason="as-negative", detail=made.negative)
            row = {name: getattr(one, name) for name in scored_schema(TEXT_SCORES).names}
            yield rejected(one.key, made) or TableRows(one.key, [{**row, CAPTION2: cast(Judged, made).negative}])
