"""Attack: a text of others that takes minutes, since a pattern tries all its beginnings with all its ends.

Every pattern and parser of captions, answers, names and annotations is fed the worst text of two lengths: eight times
the text may take thirty times as long, and not the 64 times of the square.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from twinset.cards.sheet import mark_difference, words_of
from twinset.contracts.markdown import cell, plain, short
from twinset.evaluation.answers.parser import LONGEST, parse
from twinset.filters.motion_words import MotionWords
from twinset.generators.captions.tables import FLICKR_ID, URL
from twinset.generators.kubric_scenes.assets.archives import references
from twinset.generators.negative_captions.changes import _WORD
from twinset.generators.negative_captions.rules.nouns import edited
from twinset.generators.scene_graphs.source import photo_of
from twinset.generators.video.action_genome import FRAME
from twinset.generators.video.frame_pairs import as_sentence

MEGABYTE = 1 << 20
CAPTIONS = ("a dog on a mat", "a cat on a mat")


def parsed(text: str) -> None:
    parse(text[:LONGEST], CAPTIONS)


def as_file(suffix: str) -> Callable[[str, Path], Any]:
    def read(text: str, folder: Path) -> None:
        path = folder / f"a{suffix}"
        path.write_text(text)
        try:
            references(path)
        except ValueError as error:  # refused, and soon
            assert path.name in str(error)

    return read


motion = MotionWords(kind="motion-words", words=["pick up", "a"]).open()._motion
FILES = {".mtl": as_file(".mtl"), ".obj": as_file(".obj"), ".urdf": as_file(".urdf")}
#: What reads, and its worst texts: what comes first, what is repeated and what comes last.
READERS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "materials": (FILES[".mtl"], ["map_Kd ~a ~\0", "map_~K~ ", "~ ~x", "bump ~ ~", "bump ~a\t~b", "~\\\n~"]),
    "mesh": (FILES[".obj"], ["mtllib a~ ~b", "mtllib ~\t~x", "~mtllib ~", "~\n~"]),
    "urdf": (FILES[".urdf"], ["<a filename~ ~x", '~filename="~', "<a ~filename ~", "~<a>~", "<~a~"]),
    "answers": (
        parsed,
        ["~(1) ~", "~1~)", "~both ~", "~neither ~x", "~caption ~", "~!~x", "1~ ~x", "~not a ~", "~a dog on a mat~",
         "~\n ~", "~the answer is: ~", "~1. a dog on a mat ,~", "~<think>~", "~n't~", "~(1) or ~", "~.,;~"],
    ),
    "sentence": (as_sentence, ["a~)~", "a~'~(", "a ~]}~", "a~ ,~", "~ ~a"]),
    "difference": (lambda text: mark_difference(text, text[::-1] + "a"), ["a~!~a", "~a ~", "~a b c ~", "~!~"]),
    "words": (words_of, ["~a-~", "~-~a", "~a~-"]),
    "words of negatives": (_WORD.findall, ["~a-~", "~-~a", "~a~-"]),
    "articles": (lambda text: edited(text, ()), ["~a ~", "a~ ~b", "a ~b-~", "~an~ "]),
    "motion words": (motion.search, ["pick~ ~x", "~pick ~", "~pick  ~"]),
    "Flickr's ids": (FLICKR_ID.fullmatch, ["a~#1~x", "a#~1~x", "~#~"]),
    "URLs": (URL.fullmatch, ["~a~", "~a+~:", "a://~a~ ", "~a:~"]),
    "photos": (
        photo_of,
        ["~1~_", "1_~1~x", "https://~flickr.com/~x", "http://flickr.com/~1/~_", "http://~flickr.com~/", "~1_~"],
    ),
    "frames": (FRAME.fullmatch, ["a/~0~.pn", "a~/0~.pn", "a~/1~.pn", "a~/~"]),
    "Markdown": (
        lambda text: (cell(text), plain(text), short(text)),
        ["~[~", "~http://~", "~www.~", "~a@~", "~&~", "~ ~a", "~](~", "a~@a.~", "~#1 ~"],
    ),
}  # fmt: skip
WORST = [(name, text) for name, (_, texts) in READERS.items() for text in texts]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "text"), WORST)
def test_the_worst_megabyte_takes_no_more_than_its_length(tmp_path: Path, name: str, text: str) -> None:
    read, _ = READERS[name]
    first, piece, last = text.split("~")
    arguments = (tmp_path,) if name in ("materials", "mesh", "urdf") else ()
    taken = []
    for size in (MEGABYTE // 8, MEGABYTE):
        whole = first + piece * (size // len(piece)) + last
        began = time.process_time()
        read(whole, *arguments)
        taken.append(time.process_time() - began)
    assert taken[1] < 30 * taken[0] + 1.0, f"{taken[0]:.3f} s for 128 kB, {taken[1]:.3f} s for 1 MB"
