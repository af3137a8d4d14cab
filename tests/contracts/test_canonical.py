"""The few functions on which reproducibility rests: their results are fixed for ever."""

import base64
import hashlib
import io
import re

import pytest

from twinset.contracts.canonical import CHUNK, canonical_json, digest, finite, generator_for, sample_key, sha256_of

STREAM = [910252455, 473475284, 538015296, 75476677]


def test_canonical_json_is_one_byte_string_a_value() -> None:
    assert canonical_json({"b": [1, 2.5, None, True], "a": "é"}) == '{"a":"é","b":[1,2.5,null,true]}'.encode()
    assert canonical_json({"x": {"b": 1, "a": 2}}) == canonical_json({"x": {"a": 2, "b": 1}})
    with pytest.raises(ValueError):
        canonical_json({"score": float("nan")})


def test_a_document_without_nan_is_json() -> None:
    nan, inf = float("nan"), float("inf")
    given = {"a": nan, "b": [1, -inf, (2.5, nan)], "c": {"d": inf, "e": "NaN", "f": None, "g": True}}
    assert finite(given) == {"a": None, "b": [1, None, [2.5, None]], "c": {"d": None, "e": "NaN", "f": None, "g": True}}


def test_digests_and_keys_never_change() -> None:
    assert digest({"a": 1}) == hashlib.blake2b(b'{"a":1}', digest_size=16).hexdigest()
    hashed = hashlib.blake2b(b'["eq-ag","001YG.mp4",10,20]', digest_size=10).digest()
    assert sample_key("eq-ag", "001YG.mp4", 10, 20) == "eq-ag-" + base64.b32encode(hashed).decode().lower()
    assert sample_key("eq-ag", "001YG.mp4", 10, 20) == "eq-ag-gvjocjicdiz3chkz"


def test_keys_of_hostile_identities_suit_every_reader_and_differ() -> None:
    identities = ["-xQ_.mp4", "a/b", "", " ", "é", "\ud800", "A", "a", "a.b", "1"]
    keys = [sample_key("eq-x", one) for one in identities] + [sample_key("eq-x", 1), sample_key("eq-x", 1.5)]
    assert all(re.fullmatch(r"eq-x-[a-z2-7]{16}", key) for key in keys)
    assert len(set(keys)) == len(keys)
    assert sample_key("eq-x", "a", "b") != sample_key("eq-x", "ab") != sample_key("eq-y", "ab")


def test_a_candidates_random_stream_depends_on_seed_subset_and_key_alone() -> None:
    def drawn(seed: int, subset: str, key: str) -> list[int]:
        return [int(one) for one in generator_for(seed, subset, key).integers(0, 1 << 30, 4)]

    assert drawn(0, "eq-x", "k") == drawn(0, "eq-x", "k") == STREAM
    streams = [drawn(0, "eq-x", "k"), drawn(1, "eq-x", "k"), drawn(0, "eq-y", "k"), drawn(0, "eq-x", "l")]
    assert len({tuple(one) for one in streams}) == 4


@pytest.mark.parametrize("size", [0, 1, CHUNK, CHUNK + 1])
def test_streams_are_hashed_whole(size: int) -> None:
    content = b"x" * size
    assert sha256_of(io.BytesIO(content)) == (hashlib.sha256(content).hexdigest(), size)
