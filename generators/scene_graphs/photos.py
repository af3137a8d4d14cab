"""Which captions are of one photo, although their sources call it by different names.

Flickr names a photo's file by its number and a secret (``1000268201_693b08cb0e.jpg``, with a letter for the size where
it is not the usual one). Flickr8k keeps that name; Flickr30k keeps the number alone. The number is the photo.
"""

from __future__ import annotations

import re

#: Number, secret of eight to ten hexadecimal digits, and size; no word is among the names that it matches.
_FLICKR_NAME = re.compile(r"(?:https?://[^/]*flickr\.com/(?:[^/]*/)*)?(\d+)_[0-9a-f]{8,10}(?:_[a-z0-9])?(\.[A-Za-z]+)")


def photo_of(image_id: str) -> str:
    """The photo that an image's id names: number and suffix of a name of Flickr's, any other id as it is."""
    found = _FLICKR_NAME.fullmatch(image_id)
    return f"{found[1]}{found[2]}" if found else image_id
