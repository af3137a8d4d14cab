"""Where samples come from: one module a source, each with ``plan()`` and ``make()``."""

from __future__ import annotations

from manifests.genecis_settings import AttributeTemplates, ObjectTemplates, Triplets
from manifests.recipe import Subset
from manifests.source_settings import ActionGenome, Gebc, Kubric, StableDiffusion, YouCook2
from shards.contracts import Generator


def create(name: str, subset: Subset, seed: int) -> Generator:
    """The generator of a subset. seed: of the recipe, for what is drawn.

    Modules load here, when they are needed: Blender and dlib are heavy.
    """
    source = subset.source
    match source:
        case ActionGenome():
            from generators.video.action_genome import ActionGenomeGenerator

            return ActionGenomeGenerator(name, source, subset.split)
        case Gebc():
            from generators.video.gebc import GebcGenerator

            return GebcGenerator(name, source, subset.split)
        case YouCook2():
            from generators.video.youcook2 import YouCook2Generator

            return YouCook2Generator(name, source, subset.split)
        case Kubric():
            from generators.kubric_scenes.generator import KubricGenerator

            return KubricGenerator(name, source, subset.split, seed)
        case StableDiffusion():
            from generators.edited_pairs.generator import EditedPairGenerator

            return EditedPairGenerator(name, source, subset.split, seed)
        case AttributeTemplates() | ObjectTemplates():
            from generators.galleries.generator import TemplateGenerator

            return TemplateGenerator(name, source, subset.split, seed)
        case Triplets():
            from generators.triplets.generator import TripletGenerator

            return TripletGenerator(name, source, subset.split, seed)
