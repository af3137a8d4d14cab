"""The settings of all text-to-image engines: the type of a source's setting ``engine``."""

from __future__ import annotations

from generators.text_to_image.kubric.settings import KubricImages

#: One of several: ``Annotated[KubricImages | SDXLImages, Field(discriminator="kind")]``.
ImageEngine = KubricImages
