"""JSON written piece by piece, for other tools to read whole."""

import json
from typing import Any, TextIO


class JsonArray:
    """A JSON array written item by item. length: of what is written."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.length = 0
        stream.write("[")

    def append(self, item: Any) -> None:
        """Write one item on a line of its own."""
        self._stream.write(("," if self.length else "") + "\n" + as_json(item))
        self.length += 1

    def close(self) -> None:
        """End the array."""
        self._stream.write("\n]\n")


def as_json(value: Any) -> str:
    """ASCII, because released loaders open files with whatever encoding the machine prefers."""
    return json.dumps(value, ensure_ascii=True)
