"""Reading a pickle of plain data without an unpickler: operations that could call anything do not exist here.

Read are None, bools, numbers, text, lists, tuples and dictionaries with keys of text, which is what Action Genome's
pickles hold. The standard library's `pickletools` takes the file apart; memory is bounded by the size of the file.
"""

import pickletools
from pathlib import Path
from typing import Any

from twinset.contracts.errors import WrongUse
from twinset.generators.annotation_files import MOST_EXPANDED, read_bytes

_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_EMPTY = {"EMPTY_LIST": list, "EMPTY_DICT": dict}
#: Operations that carry a number or a text.
_CARRYING = {
    *("INT", "LONG", "LONG1", "LONG4", "BININT", "BININT1", "BININT2", "FLOAT", "BINFLOAT"),
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
}


def load(path: Path) -> Any:
    """What the pickle at ``path`` holds; raises `WrongUse` where it is broken, too large or more than plain data."""
    raw = read_bytes(path)
    if len(raw) > MOST_EXPANDED:
        raise WrongUse(f"{path}: a pickle of more than {MOST_EXPANDED:,} bytes; convert it to JSON lines")
    try:
        value = _data(raw)
        _refuse_expanding(value, 4 * len(raw))
        return value
    except _NotData as error:
        problem = f"this pickle holds more than plain data: {error}"
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        problem = f"broken pickle ({type(error).__name__}: {error!s:.200})"
    raise WrongUse(f"{path}: {problem}; fetch the official annotation again, or convert it to JSON lines")


class _NotData(Exception):
    """Something that plain data does not need."""


def _data(raw: bytes) -> Any:
    stack: list[Any] = []
    marks: list[list[Any]] = []  # the stacks below each mark
    memo: dict[Any, Any] = {}
    for operation, argument, at in pickletools.genops(raw):
        name = operation.name
        if name in _CARRYING:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name in ("MEMOIZE", "BINPUT", "LONG_BINPUT", "PUT"):
            memo[len(memo) if name == "MEMOIZE" else argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            stack.append(memo[argument])
        elif name == "MARK":
            marks.append(stack)
            stack = []
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            length = int(name[-1])
            stack[-length:] = [tuple(stack[-length:])]
        elif name in ("TUPLE", "LIST", "DICT"):
            items, stack = stack, marks.pop()
            stack.append(items if name == "LIST" else tuple(items) if name == "TUPLE" else _entries(items))
        elif name == "APPENDS":
            items, stack = stack, marks.pop()
            stack[-1].extend(items)
        elif name == "SETITEMS":
            items, stack = stack, marks.pop()
            stack[-1].update(_entries(items))
        elif name == "APPEND":
            stack[-2].append(stack.pop())
        elif name == "SETITEM":
            stack[-3].update(_entries(stack[-2:]))
            del stack[-2:]
        elif name not in ("PROTO", "FRAME", "STOP"):
            raise _NotData(f"the operation {name} (at byte {at})")
    (value,) = stack
    return value


def _entries(items: list[Any]) -> dict[str, Any]:
    """Keys are text: others can take for ever to hash, or overflow the machine's stack."""
    if not all(type(key) is str for key in items[::2]):
        raise _NotData("a key that is not text")
    return dict(zip(items[::2], items[1::2], strict=True))


def _refuse_expanding(value: Any, most: int) -> None:
    """Raise `_NotData` where some parts are referred to so often that reading all would take for ever."""
    left, parts = [value], 0
    while left:
        part = left.pop()
        within = part.values() if isinstance(part, dict) else part if isinstance(part, list | tuple) else ()
        parts += len(within)
        if parts > most:
            raise _NotData(f"more than {most:,} parts, of which some are referred to again and again")
        left.extend(within)
