"""Which stages a kind of source reads, and which it refuses by what they make."""

import pytest

from twinset.contracts.source import SOURCES


@pytest.mark.parametrize(
    ("kind", "fitting", "refused", "made"),
    [
        ("confused-pairs", ("image-captions", "image-features"), "edited-photos", "gives neither photographs with"),
        ("difference-boxes", ("edited-photos",), "replayed-negatives", "makes tables"),
        ("image-rankings", ("edited-photos",), "replayed-negatives", "makes tables"),
        ("pair-verification", ("edited-photos",), "genecis-triplets", "makes triplets"),
    ],
)
def test_a_stage_of_another_kind_is_refused(kind: str, fitting: tuple[str, ...], refused: str, made: str) -> None:
    source = SOURCES.find(kind).model_construct(kind=kind)
    assert [source.misfit(SOURCES.find(name).model_construct(kind=name)) for name in fitting] == [""] * len(fitting)
    assert f"{refused} {made}" in source.misfit(SOURCES.find(refused).model_construct(kind=refused))
