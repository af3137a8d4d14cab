"""Reading a pickle of plain data without an unpickler: operations that could call anything do not exist here.

Read are None, bools, numbers, text, lists, tuples and dictionaries with keys of text, which is what Action Genome's
pickles hold. The standard library's `pickletools` takes the file apart; memory is bounded by the size of the file.
"""

import pickletools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from twinset.contracts.errors import WrongUse
from twinset.generators.annotation_files import MOST_EXPANDED, read_bytes

REMEDY = "fetch the official annotation again, or convert it to JSON lines"
_LITERALS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": tuple}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
#: Operations that carry a number or a text.
_CARRYING = frozenset(("INT", "LONG", "LONG1", "LONG4", "BININT", "BININT1", "BININT2", "FLOAT", "BINFLOAT")) | {
    *("STRING", "BINSTRING", "SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
}
_UNREAD = frozenset(("PROTO", "FRAME", "STOP"))


def load(path: Path) -> Any:
    """What the pickle at ``path`` holds; raises `WrongUse` where it is broken, too large or more than plain data."""
    raw = read_bytes(path)
    if len(raw) > MOST_EXPANDED:
        raise WrongUse(f"{path}: a pickle of more than {MOST_EXPANDED:,} bytes; convert it to JSON lines")
    try:
        return _data(raw)
    except _NotData as error:
        raise WrongUse(f"{path}: this pickle holds more than plain data: {error}; {REMEDY}") from error
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        problem = f"{type(error).__name__}: {error}"[:200]
        raise WrongUse(f"{path}: broken pickle ({problem}); {REMEDY}") from error


class _NotData(Exception):
    """Something that plain data does not need."""


def _data(raw: bytes) -> Any:
    stack: list[Any] = []
    marks: list[list[Any]] = []  # the stacks below each mark
    memo: dict[int, Any] = {}
    operations: Iterator[tuple[pickletools.OpcodeInfo, Any, Any]] = pickletools.genops(raw)
    for operation, argument, at in operations:
        name = operation.name
        if name in _CARRYING:
            stack.append(argument)
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in ("BINPUT", "LONG_BINPUT", "PUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET", "GET"):
            stack.append(memo[argument])
        elif name in _LITERALS:
            stack.append(_LITERALS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "MARK":
            marks.append(stack)
            stack = []
        elif name in ("APPENDS", "SETITEMS", "TUPLE", "LIST", "DICT"):
            items, stack = stack, marks.pop()
            if name == "TUPLE":
                stack.append(tuple(items))
            elif name == "LIST":
                stack.append(items)
            elif name == "APPENDS":
                stack[-1].extend(items)
            else:
                if name == "DICT":
                    stack.append({})
                _set(stack[-1], items, at)
        elif name in _TUPLES:
            items = [stack.pop() for _ in range(_TUPLES[name])]
            stack.append(tuple(reversed(items)))
        elif name == "APPEND":
            item = stack.pop()
            stack[-1].append(item)
        elif name == "SETITEM":
            value, key = stack.pop(), stack.pop()
            _set(stack[-1], [key, value], at)
        elif name not in _UNREAD:
            named = f"the global {argument}, whose code would run" if name == "GLOBAL" else f"the operation {name}"
            raise _NotData(f"{named} (at byte {at})")
    (value,) = stack
    return value


def _set(mapping: dict[str, Any], items: list[Any], at: int) -> None:
    """Keys are text: others can take for ever to hash, or overflow the machine's stack."""
    keys = items[::2]
    if not all(type(key) is str for key in keys):
        raise _NotData(f"a key that is not text (at byte {at})")
    mapping.update(zip(keys, items[1::2], strict=True))
