"""Canonical bytes, digests, sample keys and seeds: the few functions on which reproducibility rests."""

import base64
import hashlib
import json
import math
from collections.abc import Iterable
from os import SEEK_END, PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np


def canonical_json(value: Any) -> bytes:
    """One byte string for one JSON value: sorted keys, no spaces, UTF-8, no NaN."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "surrogatepass")


def finite(value: Any) -> Any:
    """A document with null for NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def digest(value: Any) -> str:
    """blake2b of the canonical JSON of ``value``, as 32 hexadecimal characters (128 bits)."""
    return hashlib.blake2b(canonical_json(value), digest_size=16).hexdigest()


def sample_key(subset: str, *identity: str | int | float) -> str:
    """Key of a sample: ``SUBSET-`` and 16 base32 characters (80 bits) of its source identity, never its position.

    Real identities (YouTube ids) start with dashes or hold dots and capitals, which break WebDataset readers; hashing
    makes every key match ``[a-z0-9-]+``.
    """
    hashed = hashlib.blake2b(canonical_json([subset, *identity]), digest_size=10).digest()
    return f"{subset}-{base64.b32encode(hashed).decode().lower()}"


def identity_of(*identity: str | int | float) -> str:
    """A source identity as rows show it: the JSON list that `sample_key` hashes, without the subset."""
    return canonical_json(list(identity)).decode("utf-8", "replace")


def generator_for(seed: int, subset: str, key: str) -> np.random.Generator:
    """The random stream of one candidate, the same wherever and whenever it is made."""
    entropy = hashlib.blake2b(canonical_json([seed, subset, key]), digest_size=16).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(entropy, "big")))


def sha256_of(stream: BinaryIO) -> tuple[str, int]:
    """sha256 (hexadecimal) and size in bytes of a seekable stream, from its beginning."""
    hashed = hashlib.file_digest(stream, "sha256")  # type: ignore[arg-type]  # typeshed's BinaryIO lacks readinto
    return hashed.hexdigest(), stream.seek(0, SEEK_END)


def sha256_of_file(path: Path) -> tuple[str, int]:
    """sha256 (hexadecimal) and size in bytes of a file."""
    with path.open("rb") as stream:
        return sha256_of(stream)


def names_in(given: str | PathLike[str] | Iterable[str | PathLike[str]]) -> tuple[str, ...]:
    """Several names or places, of which one alone may be given as it is."""
    return tuple(str(name) for name in ([given] if isinstance(given, str | PathLike) else given))
