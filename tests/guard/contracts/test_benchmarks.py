"""The contract of benchmarks, on a tiny copy of the layout of each."""

import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

import tests.evaluation.benchmarks.made_layouts as layouts
from tests.evaluation.benchmarks.made_layouts import Case
from twinset.contracts.errors import WrongUse
from twinset.evaluation.benchmarks import BENCHMARKS, KINDS, open_benchmark
from twinset.evaluation.benchmarks.reader import Item, Reader, image_group
from twinset.evaluation.examples import Grounding, LeftOut, Matching, Picture, Query, Statement

Opener = Callable[..., Reader]
MEDIA = (".jpg", ".jpeg", ".png", ".npy", ".mp4")
#: Kinds whose examples lie where twinset built them: their tests are in tests/evaluation/benchmarks.
BUILT_HERE = {"twinset", "rankings"}
CASES: dict[str, Case] = {
    "sugarcrepe": Case(layouts.sugarcrepe, {"swap_obj": 3, "add_att": 3}),
    "valse": Case(layouts.valse, {"existence": 1, "foil-it": 2}, {"foil not validated": 1}),
    "winoground": Case(layouts.winoground, {"test": 3}),
    "bivlc": Case(layouts.bivlc, {"test": 4}, images="inside"),
    "aro": Case(layouts.aro, {"attribution": 2, "relation": 1}),
    "aro-order": Case(layouts.aro_order, {"coco": 2}),
    "genecis": Case(layouts.genecis, {"focus-attribute": 2, "change-object": 2}),
    "cirr": Case(layouts.cirr, {"global": 3, "subset": 3}, images="named"),
    "cirr-test": Case(layouts.cirr_test, {"global": 3, "subset": 3}, images="named", targets=False),
    "circo": Case(layouts.circo, {"val": 3}),
    "circo-test": Case(partial(layouts.circo, split="test"), {"test": 3}, targets=False),
    "mit-states": Case(layouts.mit_states, {"test": 12}, images="own"),
    "flickr30k": Case(layouts.flickr30k, {"image-to-text": 2, "text-to-image": 11}),
    "coco": Case(layouts.coco, {"image-to-text": 2, "text-to-image": 11}),
    "eqben": Case(layouts.eqben, {"eq-ag": 3, "eq-youcook2": 3, "eq-sd": 3}),
    "gebc": Case(layouts.gebc, {"val": 3}, {"no words for one side": 1}),
}
if find_spec("twinset_extras") is not None:
    from tests.extras.benchmarks.made_layouts import CASES as OF_EXTRAS

    CASES |= OF_EXTRAS
#: Of other installed packages, such as tests/foreign, the packages' own tests.
ALL = [name for name in BENCHMARKS.kinds() if name in KINDS or BENCHMARKS.distribution(name).startswith("twinset-")]
NAMES = [name for name in ALL if name not in BUILT_HERE]


def case_of(name: str) -> Case:
    assert name in CASES, f"benchmark {name} has no case: write its layout, and a line in CASES"
    return CASES[name]


@pytest.fixture
def made_benchmark(tmp_path: Path) -> Opener:
    """Writes the tiny layout of a benchmark into the test's folder, and opens it."""

    def make(name: str, *subsets: str) -> Reader:
        case_of(name).write(tmp_path)
        return open_benchmark(name, tmp_path, subsets)

    return make


def pictures_of(item: Item) -> Iterator[Picture]:
    if isinstance(item, Matching):
        yield from item.images
    elif isinstance(item, Query):
        yield from [picture for picture in (item.image, *item.gallery) if isinstance(picture, Picture)]
    elif isinstance(item, Statement):
        yield item.image
    elif isinstance(item, Grounding):
        yield from item.frames


def described(item: Item) -> object:
    """An example without functions, which differ from reading to reading."""
    if isinstance(item, LeftOut):
        return item
    words: object = item.captions if isinstance(item, Matching | Grounding) else item.text
    words = words, *(getattr(item, name, None) for name in ("targets", "excluded", "true"))
    texts = [str(text) for text in getattr(item, "gallery", ()) if isinstance(text, str)]
    shown = [picture.where for picture in pictures_of(item)]
    return item.key, item.subset, item.group, item.category, words, texts, shown


def counts(items: Sequence[Item]) -> tuple[dict[str, int], dict[str, int]]:
    asked = Counter(item.subset for item in items if not isinstance(item, LeftOut))
    return dict(asked), dict(Counter(item.reason for item in items if isinstance(item, LeftOut)))


@pytest.mark.parametrize("name", ALL)
def test_it_says_what_it_is(name: str) -> None:
    reader = BENCHMARKS.find(name)
    assert reader.title and reader.citation.startswith("https://") and reader.expects and reader.obtained
    assert name in BUILT_HERE or {*case_of(name).subsets}


@pytest.mark.parametrize("name", NAMES)
def test_examples_are_whole_and_all_there_in_a_fixed_order_with_unique_keys(made_benchmark: Opener, name: str) -> None:
    benchmark = made_benchmark(name)
    digest = benchmark.digest()
    items = list(benchmark.examples())
    assert counts(items) == (case_of(name).subsets, case_of(name).left_out)
    assert list(benchmark.subsets) == list(case_of(name).subsets)
    asked = [item for item in items if not isinstance(item, LeftOut)]
    assert len({item.key for item in asked}) == len(asked) and all(item.group for item in asked)
    for item in asked:
        for picture in pictures_of(item):
            with Image.open(io.BytesIO(picture.read()), formats=["JPEG", "PNG"]) as shown:
                assert shown.convert("RGB").size[0] >= 8
        if isinstance(item, Query):
            places = {*range(len(item.gallery))}
            assert item.targets | item.excluded <= places and not item.targets & item.excluded
            assert (item.targets or not case_of(name).targets) and (item.image is not None or item.text)
    assert [*map(described, items)] == [*map(described, benchmark.examples())]
    again = open_benchmark(name, benchmark.data)
    assert [*map(described, items)] == [*map(described, again.examples())]
    assert digest == benchmark.digest() == again.digest()


@pytest.mark.parametrize("name", NAMES)
def test_a_subset_alone_is_what_it_is_among_others(made_benchmark: Opener, name: str) -> None:
    whole = made_benchmark(name)
    assert open_benchmark(name, whole.data, whole.subsets[::-1]).digest() == whole.digest()
    everything = [described(item) for item in whole.examples() if not isinstance(item, LeftOut)]
    for subset in whole.subsets:
        alone = open_benchmark(name, whole.data, [subset])
        items = [item for item in alone.examples() if not isinstance(item, LeftOut)]
        assert {item.subset for item in items} == {subset}
        assert [*map(described, items)] == [example for example in everything if example[1] == subset]  # type: ignore[index]
        assert (alone.digest() == whole.digest()) == (len(whole.subsets) == 1)


@pytest.mark.parametrize("name", NAMES)
def test_the_digest_changes_with_a_caption_and_not_with_the_folder(tmp_path: Path, name: str) -> None:
    digests = []
    for place, word in enumerate(("red", "green", "red")):
        case_of(name).write(tmp_path / f"{place}", word)
        digests.append(open_benchmark(name, tmp_path / f"{place}").digest())
    assert digests[0] == digests[2] != digests[1]


@pytest.mark.parametrize("name", [name for name in NAMES if case_of(name).images != "inside"])
def test_a_missing_image_is_counted_and_all_missing_is_an_error(made_benchmark: Opener, name: str) -> None:
    benchmark, own = made_benchmark(name), case_of(name).images == "own"
    asked = sum(counts(list(benchmark.examples()))[0].values())
    media = sorted(path for path in benchmark.data.rglob("*") if path.suffix.lower() in MEDIA)
    if not own:
        media[0].unlink()
        left, out = counts(list(open_benchmark(name, benchmark.data).examples()))
        assert 0 < sum(left.values()) < asked and {*out} & {"missing image", "missing video"}
    for path in media[1 if not own else 0 :]:
        path.unlink()
    with pytest.raises(WrongUse) as refused:
        list(open_benchmark(name, benchmark.data).examples())
    assert str(benchmark.data) in str(refused.value) and benchmark.expects in str(refused.value)
    assert own or "missing" in str(refused.value)


def test_an_image_outside_the_folder_is_never_looked_for(made_benchmark: Opener, tmp_path: Path) -> None:
    benchmark = made_benchmark("sugarcrepe", "swap_obj")
    path = benchmark.data / "swap_obj.json"
    path.write_text(path.read_text().replace("000000000001.jpg", "../../etc/passwd.jpg"))
    with pytest.raises(WrongUse, match=r"swap_obj\.json record '1': '\.\./\.\./etc/passwd\.jpg' leaves the folder"):
        list(benchmark.examples())


@given(st.integers(0, 10**12 - 1))
def test_cocos_names_of_one_image_are_one_group(number: int) -> None:
    names = [f"{prefix}{number:012d}.jpg" for prefix in ("", "COCO_val2014_", "COCO_train2014_")]
    assert len({image_group(name) for name in names}) == 1
    assert image_group(f"VisualDialog_val2018_{number:012d}.jpg") not in {image_group(name) for name in names}
    assert image_group("a/1.jpg") != image_group("b/1.jpg"), "two photos of one number in two folders"
