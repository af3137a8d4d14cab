"""Reading a pickle as data: whatever it holds, no code of it runs and it cannot outgrow its file.

Allowed are None, bools, numbers, text, bytes, lists, tuples, dictionaries and sets (with plain keys), and numpy arrays
and scalars of numbers or text. This is the standard library's unpickler in Python, which reads some million operations
a second and, unlike the one in C, sets no memory aside for lengths that a file merely claims.
"""

from __future__ import annotations

import io
import math
import pickle
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from generators.annotation_files import read_bytes
from manifests.errors import WrongUse

# Operations that make objects of any class or reach outside the file.
BARRED = (
    pickle.INST, pickle.OBJ, pickle.NEWOBJ, pickle.NEWOBJ_EX, pickle.EXT1, pickle.EXT2, pickle.EXT4, pickle.PERSID,
    pickle.BINPERSID, pickle.NEXT_BUFFER, pickle.READONLY_BUFFER,
)  # fmt: skip
# Operations that hash, and where among the topmost items of the stack the keys lie.
KEYED = {
    pickle.DICT: slice(0, None, 2),
    pickle.SETITEM: slice(-2, -1),
    pickle.SETITEMS: slice(0, None, 2),
    pickle.ADDITEMS: slice(None),
    pickle.FROZENSET: slice(None),
}
ARRAY_KINDS = "biufcSU"
# Hashing a nested tuple can take time without bound, so that keys are plain.
KEYS = (str, int, float, bytes, bool, type(None))
REMEDY = "only plain data is read; fetch the official annotation again, or convert it to JSON lines"


def load(path: Path) -> Any:
    """What the pickle at ``path`` holds; raises `WrongUse` naming what is forbidden or broken in it, and where."""
    raw = read_bytes(path)
    stream = io.BytesIO(raw)
    try:
        return _DataUnpickler(stream, len(raw)).load()
    except _Forbidden as error:
        raise WrongUse(f"{path}: this pickle holds more than plain data: {error}; {REMEDY}") from error
    except Exception as error:  # a broken pickle can raise anything: IndexError, struct.error, KeyError ...
        problem = f"{type(error).__name__}: {error}"[:200]
        raise WrongUse(f"{path}: broken pickle before byte {stream.tell()} ({problem}); {REMEDY}") from error


class _Forbidden(Exception):
    """Something that plain data does not need."""


class _Dtype:
    """A dtype while its state is still to come."""

    __slots__ = ("dtype",)

    def __init__(self, code: Any) -> None:
        # np.dtype takes classes and lists of fields too; pickles of plain dtypes hold a short code ("f8").
        if not isinstance(code, str) or np.dtype(code).kind not in ARRAY_KINDS:
            raise _Forbidden(f"a numpy array of {code!r}")
        self.dtype: np.dtype[Any] = np.dtype(code)


class _Function:
    """A global that a pickle may call."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call


class _DataUnpickler(pickle._Unpickler):
    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)
    stack: list[Any]
    append: Callable[[Any], None]
    read: Callable[[int], bytes]

    def __init__(self, stream: io.BytesIO, size: int) -> None:
        super().__init__(stream, encoding="latin1")  # as numpy arrays written by Python 2 need
        self._copies_left = 3 * size  # old protocols need two: text to bytes, bytes to array
        functions = {
            ("numpy", "ndarray"): _Function(_never),
            ("numpy", "dtype"): _Function(lambda code, align=False, copy=False: _Dtype(code)),
            ("_codecs", "encode"): _Function(self._encode),
            ("__builtin__", "bytes"): _Function(lambda: b""),  # how protocols below 3 write b""
        }
        for core in ("numpy.core", "numpy._core"):  # before and since numpy 2
            functions[f"{core}.multiarray", "_reconstruct"] = _Function(lambda kind, shape, code: np.empty(0))
            functions[f"{core}.multiarray", "scalar"] = _Function(self._scalar)
            functions[f"{core}.numeric", "_frombuffer"] = _Function(self._from_buffer)
        self._functions = functions

    def find_class(self, module: str, name: str) -> Any:
        try:
            return self._functions[module, name]
        except KeyError:
            raise _Forbidden(f"the global {module}.{name}, whose code would run") from None

    def load_reduce(self) -> None:
        arguments, function = self.stack.pop(), self.stack[-1]
        if not isinstance(function, _Function) or not isinstance(arguments, tuple):
            raise _Forbidden(f"a call of {type(function).__name__}")
        self.stack[-1] = function.call(*arguments)

    def load_build(self) -> None:
        state, built = self.stack.pop(), self.stack[-1]
        if isinstance(built, _Dtype):
            _version, order, subdtype, names, fields, *_sizes = state
            if subdtype is not None or names is not None or fields is not None:
                raise _Forbidden("a numpy array of records")
            built.dtype = built.dtype.newbyteorder(order)
        elif isinstance(built, np.ndarray):
            _version, shape, dtype, fortran, raw = state
            raw = raw.encode("latin1") if isinstance(raw, str) else raw
            self._spend(raw)
            flat = self._from_buffer(raw, dtype, shape)
            whole: Any = (1, flat.shape, flat.dtype, bool(fortran), raw)
            built.__setstate__(whole)
        else:
            raise _Forbidden(f"a state for {type(built).__name__}")

    def load_bytearray8(self) -> None:
        # The library's own sets the claimed length aside before it reads.
        (length,) = struct.unpack("<Q", self.read(8))
        self.append(bytearray(self.read(length)))

    def _encode(self, text: str, codec: str = "latin1") -> bytes:
        """How protocols below 3 write bytes."""
        if codec not in ("latin1", "latin-1"):
            raise _Forbidden(f"the codec {codec!r}")
        self._spend(text)
        return text.encode("latin1")

    def _scalar(self, dtype: _Dtype, raw: bytes | str) -> Any:
        raw = raw.encode("latin1") if isinstance(raw, str) else raw
        self._spend(raw)
        return self._from_buffer(raw, dtype, (1,))[0]

    def _from_buffer(self, raw: bytes | bytearray, dtype: _Dtype, shape: tuple[int, ...], order: Any = "C") -> Any:
        if not isinstance(dtype, _Dtype) or not isinstance(raw, bytes | bytearray):
            raise _Forbidden("a numpy array of objects")
        if math.prod(shape) * dtype.dtype.itemsize != len(raw):
            raise ValueError(f"{len(raw)} bytes for an array of shape {shape}")
        return np.frombuffer(raw, dtype.dtype).reshape(shape, order=order)

    def _spend(self, copied: bytes | str) -> None:
        # One long text, recalled often, would let a small file fill the memory.
        self._copies_left -= len(copied)
        if self._copies_left < 0:
            raise ValueError("its arrays are larger than the file")


def _never(*_arguments: Any) -> Any:
    raise _Forbidden("a numpy array without its maker")


def _barred(_unpickler: Any) -> None:
    raise _Forbidden("an object of a class")


def _with_plain_keys(operation: bytes, keys: slice) -> Callable[[Any], None]:
    perform: Callable[[Any], None] = pickle._Unpickler.dispatch[operation[0]]

    def check_and_perform(unpickler: Any) -> None:
        for key in unpickler.stack[keys]:
            if not isinstance(key, KEYS):
                raise _Forbidden(f"a {type(key).__name__} as a key")
        perform(unpickler)

    return check_and_perform


_DataUnpickler.dispatch |= {operation[0]: _barred for operation in BARRED}
_DataUnpickler.dispatch |= {operation[0]: _with_plain_keys(operation, keys) for operation, keys in KEYED.items()}
_DataUnpickler.dispatch |= {
    pickle.REDUCE[0]: _DataUnpickler.load_reduce,
    pickle.BUILD[0]: _DataUnpickler.load_build,
    pickle.BYTEARRAY8[0]: _DataUnpickler.load_bytearray8,
}
