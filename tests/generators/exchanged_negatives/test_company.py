"""What captions name together, and how surely they name what is there."""

import numpy as np

from twinset.generators.exchanged_negatives.company import Company, Ints, Seen

NAMES = ["boat", "bus", "wave", "street"]
BOAT, BUS = 0, 1


def numbers(*values: int) -> Ints:
    return np.array(values, np.int64)


def test_a_thing_goes_with_what_captions_of_two_photos_name_beside_it() -> None:
    said = [["boat", "wave"]] * 3 + [["bus", "street"]] * 3 + [["boat", "street"]]
    company = Company(numbers(BOAT, BUS), said, NAMES, np.arange(7))
    assert company(numbers(0, 3, 3), numbers(BUS, BOAT, BUS)).tolist() == [False, False, True]
    assert company(numbers(0), numbers(BOAT), numbers(BOAT)).tolist() == [True]


def test_captions_of_one_photo_count_once() -> None:
    said = [["boat", "wave"]] * 3 + [["bus", "wave"]] * 3
    company = Company(numbers(BOAT, BUS), said, NAMES, numbers(0, 1, 2, 3, 3, 3))
    assert company(numbers(3, 0), numbers(BOAT, BUS), numbers(BUS, BOAT)).tolist() == [True, False]


def test_what_is_replaced_need_not_go_with_what_replaces_it() -> None:
    said = [["boat", "wave"], ["bus", "wave"]] * 2
    company = Company(numbers(BOAT, BUS), said, NAMES, np.arange(4))
    assert company(numbers(0), numbers(BUS), numbers(BOAT)).all()
    assert not company(numbers(0), numbers(BUS)).any()


def test_a_thing_that_captions_of_a_photo_agree_on_is_not_there_unsaid() -> None:
    captions, photo = np.arange(400), np.arange(400) // 4
    sure, seldom = captions, captions[::4]  # all captions of a photo say the first thing, one of them the second
    both = np.r_[sure, seldom], np.r_[np.full(400, BOAT), np.full(100, BUS)]
    seen = Seen(photo, *both)
    assert seen(numbers(0, 0), numbers(BOAT, BUS)).tolist() == [True, False]
    assert seen.captions(numbers(0, 99)).tolist() == [4, 4]


def test_one_caption_a_photo_tells_nothing_of_what_goes_unsaid() -> None:
    assert Seen(np.arange(3), np.arange(3), numbers(BOAT, BUS, BUS))(numbers(0), numbers(BUS)).all()
