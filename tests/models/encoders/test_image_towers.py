"""Thumbnails are encoded without a model."""

import numpy as np
from PIL import Image

from twinset.models.encoders.image_towers import THUMBNAIL, InBuild, open_tower, tower_files


def test_thumbnails_are_alike_where_layouts_of_colours_are() -> None:
    drawn = np.random.default_rng(0)
    picture = Image.fromarray(drawn.integers(0, 256, (64, 48, 3), np.uint8))
    bright = Image.fromarray((np.asarray(picture) // 2 + 90).astype(np.uint8))
    flat = [Image.new("RGB", (9, 9), colour) for colour in ("red", "black", "white")]
    turned = picture.rotate(180)
    pictures = [picture, bright, picture.resize((240, 320), Image.Resampling.NEAREST), turned, *flat]
    found = open_tower(THUMBNAIL, InBuild("cpu", 2, 1))(pictures)
    assert tower_files(THUMBNAIL).paths == () and found.dtype == np.float32
    cosines = found @ found.T
    assert np.allclose(np.diag(cosines), 1, atol=1e-6)
    assert cosines[0, 1] > 0.99 and cosines[0, 2] > 0.99 and abs(cosines[0, 3]) < 0.3
    assert cosines[5, 6] > 0.99 and abs(cosines[0, 5]) < 0.01
