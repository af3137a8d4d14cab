"""The settings of all text-to-image engines: the type of a source's setting ``engine``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from twinset.models.diffusion.settings import DiffusionImages
from twinset_demo.kubric_grammar.settings import KubricImages

#: Of every engine.
ENGINES = (DiffusionImages, KubricImages)

ImageEngine = Annotated[DiffusionImages | KubricImages, Field(discriminator="kind")]
