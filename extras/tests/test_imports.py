"""What twinset-extras uses of twinset: a new module is a decision, and is public from then on."""

import ast
from pathlib import Path

EXTRAS = Path(__file__).parents[1] / "twinset_extras"
IMPORTED = """
twinset
twinset.cli.command
twinset.cli.terminal
twinset.contracts.candidate
twinset.contracts.canonical
twinset.contracts.doors
twinset.contracts.errors
twinset.contracts.kinds
twinset.contracts.kinds.kind
twinset.contracts.kinds.pair
twinset.contracts.kinds.samples
twinset.contracts.kinds.template
twinset.contracts.licences.terms
twinset.contracts.locations
twinset.contracts.parts
twinset.contracts.recipe
twinset.contracts.recipe.strict_yaml
twinset.contracts.references
twinset.contracts.source
twinset.evaluation.benchmarks.pictures
twinset.evaluation.benchmarks.reader
twinset.evaluation.benchmarks.rows
twinset.evaluation.examples
twinset.evaluation.metrics.bootstrap
twinset.evaluation.metrics.figures
twinset.evaluation.metrics.galleries
twinset.evaluation.metrics.row_values
twinset.evaluation.score_files.opening
twinset.filters.clip_scores
twinset.generators.annotation_files
twinset.generators.captions.tables
twinset.generators.copied_pairs
twinset.generators.decisions.agreement
twinset.generators.decisions.answers
twinset.generators.decisions.question
twinset.generators.decisions.source
twinset.generators.image_files
twinset.generators.image_pairs
twinset.generators.image_verification.questions
twinset.generators.licences
twinset.generators.mixing
twinset.generators.negative_captions.changes
twinset.generators.negative_captions.exchange.vocabulary
twinset.generators.negative_captions.kinds
twinset.generators.negative_captions.wording
twinset.generators.neighbours.table
twinset.generators.papers
twinset.generators.prompt_to_prompt.source
twinset.generators.prompt_to_prompt.vocabulary
twinset.generators.reasons
twinset.generators.scene_graphs.relations
twinset.generators.scene_graphs.source
twinset.generators.triplets.ratings
twinset.models.device
twinset.models.diffusion.painter
twinset.models.diffusion.settings
twinset.models.encoders.contract
twinset.models.engines
twinset.models.image_engine
twinset.models.language_models.answers
twinset.models.language_models.settings
twinset.models.spacy_pipelines
twinset.shards.contracts
twinset.shards.export.captioned
twinset.shards.export.formats
twinset.shards.finished_stage
twinset.shards.media.decode
twinset.shards.media.media_folder
twinset.shards.records
twinset.shards.storage.layout
twinset.shards.storage.store
twinset.shards.storage.tar_reader
"""


def test_the_extras_import_these_modules_of_twinset() -> None:
    found = set[str]()
    for path in EXTRAS.rglob("*.py"):
        nodes = [*ast.walk(ast.parse(path.read_text("utf-8")))]
        found |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
        found |= {one.name for node in nodes if isinstance(node, ast.Import) for one in node.names}
    assert sorted(one for one in found if one.partition(".")[0] == "twinset") == IMPORTED.split()
