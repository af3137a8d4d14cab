"""Which module defines each name of `twinset` that is imported when it is first used."""

from collections.abc import Iterable
from os import PathLike

#: By module: contracts to write a part against, and functions for notebooks.
_NAMES = {
    "twinset.evaluation.from_python": "compare evaluate scores",
    "twinset.filters.contract": "check_filter",
    "twinset.generators.caption_scores.contract": "check_scorer",
    "twinset.generators.contract": "check_source",
    "twinset.generators.image_files": "ImageFiles ImageFolderSource UnusableImage VideoFolderSource",
    "twinset.generators.image_pairs": "NamedPairCandidate NamedPairSource",
    "twinset.contracts.candidate": "Candidate CaptionedCandidate",
    "twinset.contracts.canonical": "generator_for identity_of sample_key sha256_of_file",
    "twinset.contracts.errors": "BuildFailed DecisionsMissing TwinsetError WrongUse",
    "twinset.contracts.recipe": "Recipe load_recipe",
    "twinset.contracts.references": "Reference",
    "twinset.contracts.source": "AnnotationFile MediaFolderPath Place StageName",
    "twinset.contracts.parts": "Filter LeftOut",
    "twinset.shards.contracts": "Context RowCandidate RowStage Source TableStage",
    "twinset.contracts.kinds.pair": "Pair",
    "twinset.contracts.kinds.samples": "Drop Frame Keep Rejected Score TableRows Verdict",
    "twinset.stages.publishing.publish": "publish",
}
DEFINED_IN = {name: module for module, names in _NAMES.items() for name in names.split()}


def names_in(given: str | PathLike[str] | Iterable[str | PathLike[str]]) -> tuple[str, ...]:
    """Several names or places, of which one alone may be given as it is."""
    return tuple(str(one) for one in ([given] if isinstance(given, str | PathLike) else given))
