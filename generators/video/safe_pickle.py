"""Reading a pickle as data: no code of it runs, and its memory and time are bounded by the size of the file.

Allowed are None, bools, numbers, text, bytes, lists, tuples, dictionaries and sets, and numpy arrays and scalars of
numbers or text. Keys of dictionaries and members of sets are text, bytes, numbers of 32 bits, or tuples of at most 16
of those: tuples within tuples, recalled twice each, take exponential time to hash, deep ones overflow the machine's
stack, and equal hashes of larger numbers are easily found.

First all operations are looked at without being carried out, then the standard library's unpickler carries them out
with an allow-list of globals (https://docs.python.org/3/library/pickle.html#restricting-globals).
"""

import io
import pickle
import pickletools
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse
from twinset.generators.annotation_files import read_bytes

# Operations that make objects of classes or reach outside the file; plain data needs none of them.
BARRED = {
    "INST", "OBJ", "NEWOBJ", "NEWOBJ_EX", "EXT1", "EXT2", "EXT4", "PERSID", "BINPERSID", "NEXT_BUFFER",
    "READONLY_BUFFER",
}  # fmt: skip
MEMO = ("PUT", "BINPUT", "LONG_BINPUT")
DTYPE_KINDS = "biufcSU"
NO_KEY, ATOM, FLAT = range(3)  # what may not be hashed, what may, and a short tuple of that
LONGEST_FLAT = 16
#: Operations that only put something on the stack; many millions, so that one look at a dictionary tells.
_PUSHED = {
    **dict.fromkeys(("NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "STRING", "BINSTRING"), ATOM),
    **dict.fromkeys(("SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"), ATOM),
    **dict.fromkeys(("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"), ATOM),
    **dict.fromkeys(("FLOAT", "BINFLOAT", "EMPTY_LIST", "EMPTY_DICT", "EMPTY_SET", "GLOBAL"), NO_KEY),
}
_INTEGERS = ("INT", "LONG", "LONG1", "LONG4")
_GET = ("GET", "BINGET", "LONG_BINGET")


def _effect(operation: pickletools.OpcodeInfo) -> tuple[int, bool, int]:
    """Of an operation: values that it takes from below a mark or, where it needs none, from the top; whether it needs
    a mark; values that it puts there.
    """
    before = operation.stack_before
    marked = pickletools.markobject in before
    return before.index(pickletools.markobject) if marked else len(before), marked, len(operation.stack_after)


#: Which of the values that an operation takes it hashes.
_KEYS = {
    "DICT": slice(0, None, 2), "SETITEMS": slice(0, None, 2), "SETITEM": slice(1, 2), "FROZENSET": slice(None),
    "ADDITEMS": slice(None),
}  # fmt: skip
_EFFECTS = {operation.name: _effect(operation) for operation in pickletools.opcodes}
REMEDY = "only plain data is read; fetch the official annotation again, or convert it to JSON lines"


def load(path: Path) -> Any:
    """What the pickle at ``path`` holds. Raises `WrongUse`: it cannot be read, is broken, or holds more than plain
    data; the message says what.
    """
    raw = read_bytes(path)
    try:
        _check_operations(raw)
        return _DataUnpickler(raw).load()
    except _Forbidden as error:
        raise WrongUse(f"{path}: this pickle holds more than plain data: {error}; {REMEDY}") from error
    except Exception as error:  # a broken pickle can raise anything: IndexError, struct.error, KeyError ...
        problem = f"{type(error).__name__}: {error}"[:200]
        raise WrongUse(f"{path}: broken pickle ({problem}); {REMEDY}") from error


def _check_operations(raw: bytes) -> None:
    """Raise for operations that plain data does not need, for lengths and places that are not in the file, and for keys
    that are costly to hash. What lies on the unpickler's stack is followed as far as that is needed.
    """
    stack: list[int] = []
    marks: list[int] = []  # places in the stack
    memo: dict[Any, int] = {}
    operations: Iterator[tuple[pickletools.OpcodeInfo, Any, Any]] = pickletools.genops(raw)
    for operation, argument, at in operations:  # ValueError where an argument is longer than the file
        name = operation.name
        if (pushed := _PUSHED.get(name)) is not None:
            stack.append(pushed)
        elif name == "MEMOIZE":
            memo[len(memo)] = stack[-1]
        elif name in _GET:
            stack.append(memo[argument])
        elif name == "MARK":
            marks.append(len(stack))
        elif name in MEMO:
            if argument > len(raw):  # the unpickler sets memory aside up to this place
                raise ValueError(f"place {argument} of the memo in a file of {len(raw)} bytes, at byte {at}")
            memo[argument] = stack[-1]
        elif name in BARRED:
            raise _Forbidden(f"an object of a class ({name} at byte {at})")
        elif name in _INTEGERS:
            stack.append(ATOM if abs(argument) < 1 << 31 else NO_KEY)
        elif name == "DUP":
            stack.append(stack[-1])
        elif name == "POP" and marks and marks[-1] == len(stack):
            marks.pop()
        else:
            _apply(name, stack, marks, at)


def _apply(name: str, stack: list[int], marks: list[int], at: int) -> None:
    """Take from the stack what an operation takes, look at the keys among it, and put there what it makes."""
    below, marked, puts = _EFFECTS[name]
    start = marks.pop() if marked else len(stack) - below
    first = start - below if marked else start
    if first < (marks[-1] if marks else 0):
        raise ValueError(f"{name} at byte {at} takes more than there is")
    taken = stack[start:]
    del stack[first:]
    keys = taken[_KEYS[name]] if name in _KEYS else ()
    if NO_KEY in keys:
        kept = f"text, numbers of 32 bits and tuples of at most {LONGEST_FLAT} of those"
        raise _Forbidden(f"a key or a member of a set that is none of {kept} ({name} at byte {at})")
    made = NO_KEY
    if "TUPLE" in name and len(taken) <= LONGEST_FLAT and all(one == ATOM for one in taken):
        made = FLAT
    stack.extend([made] * puts)


class _Forbidden(Exception):
    """Something that plain data does not need."""


class _Dtype:
    """A numpy dtype of numbers or text. Never a real one, whose own state could describe any memory."""

    __slots__ = ("dtype",)

    def __init__(self, code: Any) -> None:
        # np.dtype takes classes and lists of fields too; pickles of plain dtypes hold a short code ("f8").
        if not isinstance(code, str) or np.dtype(code).kind not in DTYPE_KINDS:
            raise _Forbidden(f"a numpy array of {code!r}")
        self.dtype: np.dtype[Any] = np.dtype(code)

    def __setstate__(self, state: Any) -> None:
        self.dtype = self.dtype.newbyteorder(state[1])


class _Array(np.ndarray[Any, Any]):
    """An array whose state is checked: shape and dtype must be those of its bytes."""

    counted: Callable[[Any], bytes]  # until there is a state

    def __setstate__(self, state: Any) -> None:
        _version, shape, dtype, fortran, raw = state
        raw = self.counted(raw)
        del self.counted
        checked = _from_buffer(raw, dtype, shape)
        whole: Any = (1, checked.shape, checked.dtype, bool(fortran), raw)
        super().__setstate__(whole)


class _Call(partial[Any]):
    """A function that a pickle may call, and change in no way."""

    def __setstate__(self, _state: Any) -> None:
        raise _Forbidden("a state for a function")


class _DataUnpickler(pickle.Unpickler):
    def __init__(self, raw: bytes) -> None:
        super().__init__(io.BytesIO(raw), encoding="latin1")  # as numpy arrays written by Python 2 need
        self._copies_left = 3 * len(raw)  # bytes; old protocols need two: text to bytes, bytes to array

    def find_class(self, module: str, name: str) -> Any:
        """What stands in for a global: never a class, so that nothing but the calls below is made."""
        functions: dict[tuple[str, str], Callable[..., Any]] = {
            ("numpy", "dtype"): lambda code, align=False, copy=False: _Dtype(code),
            ("numpy.core.multiarray", "_reconstruct"): self._array,
            ("numpy.core.multiarray", "scalar"): lambda dtype, raw: _from_buffer(self._counted(raw), dtype, (1,))[0],
            ("numpy.core.numeric", "_frombuffer"): _from_buffer,
            ("_codecs", "encode"): self._encode,  # how protocols below 3 write bytes
            ("__builtin__", "bytes"): lambda: b"",  # how they write b""
        }
        if (module, name) == ("numpy", "ndarray"):
            return None  # the first argument of _reconstruct
        if function := functions.get((module.replace("numpy._core", "numpy.core"), name)):  # numpy 2 renamed it
            return _Call(function)
        raise _Forbidden(f"the global {module}.{name}, whose code would run")

    def _array(self, _kind: Any, _shape: Any, _code: Any) -> _Array:
        array = _Array(0)
        array.counted = self._counted
        return array

    def _encode(self, text: str, codec: str = "latin1") -> bytes:
        if codec not in ("latin1", "latin-1"):
            raise _Forbidden(f"the codec {codec!r}")
        return self._counted(text)

    def _counted(self, copied: bytes | str) -> bytes:
        # One long text, recalled often, would let a small file fill the memory.
        self._copies_left -= len(copied)
        if self._copies_left < 0:
            raise ValueError("its arrays are larger than the file")
        return copied.encode("latin1") if isinstance(copied, str) else copied


def _from_buffer(raw: bytes | bytearray, dtype: _Dtype, shape: tuple[int, ...], order: Any = "C") -> NDArray[Any]:
    """A view of bytes as an array."""
    if not isinstance(dtype, _Dtype) or not isinstance(raw, bytes | bytearray):
        raise _Forbidden("a numpy array of objects")
    return np.frombuffer(raw, dtype.dtype).reshape(shape, order=order)
