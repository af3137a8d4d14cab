"""Which captions are of one photo, although their sources call it by different names.

Flickr names a photo's file by its number and a secret (``1000268201_693b08cb0e.jpg``, with a letter for the size where
it is not the usual one). Flickr8k keeps that name; Flickr30k keeps the number alone. The number is the photo.
"""

from __future__ import annotations

import re

#: Number, secret of eight to ten hexadecimal digits, and size. A secret of decimal digits alone is believed where it
#: has ten, none of them padding, after a number as long as Flickr's: frames and dates are written so
#: (``12_00000345.jpg``, ``1_20230101.jpg``).
_FLICKR_NAME = re.compile(
    r"(?:https?://[^/]*flickr\.com/(?:[^/]*/)*)?(\d+(?=_\d*[a-f])|\d{7,}(?=_(?!00)\d{10}(?!\d)))"
    r"_[0-9a-f]{8,10}(?:_[a-z0-9])?(\.[A-Za-z]+)"
)


def photo_of(image_id: str) -> str:
    """The photo that an image's id names: number and suffix of a name of Flickr's, any other id as it is.

    A tab becomes ``\\t``: in the rejection of a caption it ends the photo (`generators.scene_graphs.generator`).
    """
    found = _FLICKR_NAME.fullmatch(image_id)
    return f"{found[1]}{found[2]}" if found else image_id.replace("\t", "\\t")
