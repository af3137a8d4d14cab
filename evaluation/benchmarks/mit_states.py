"""MIT-States as compositional retrieval: an image of one state and the word for another (Isola et al., 2015)."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from twinset.evaluation.benchmarks.reader import MISSING, Item, Reader
from twinset.evaluation.examples import LeftOut, Picture, Query
from twinset.shards.media.media_folder import IMAGE_SUFFIXES

# The test split of Vo et al. (2019), which GeneCIS takes over (Table 3): nouns that training never shows.
_NOUNS = """
armor bracelet bush camera candy castle ceramic cheese clock clothes coffee fan fig fish foam forest fruit furniture
garden gate glass horse island laptop lead lightning mirror orange paint persimmon plastic plate potato road rubber
sand shell sky smoke steel stream table tea tomato vacuum wax wheel window wool
"""
NOUNS = frozenset(_NOUNS.split())
ANY_STATE = "adj"  # folders of a noun in no particular state
FOLDERS = ("images", "release_dataset/images", ".")
SUBSET = "test"


class MitStates(Reader):
    """``images/ADJECTIVE NOUN/*.jpg``: the names of the folders are the annotation.

    Every image of a test noun asks for every other adjective of that noun, with the adjective alone as its text. All
    test images but the reference are ranked, and any image of the wanted adjective and noun is right.
    """

    name = "mit-states"
    title = "MIT-States (2015), compositional retrieval"
    citation = "https://arxiv.org/abs/1812.07119"
    expects = "images/ADJECTIVE NOUN/….jpg, such as 'images/ancient castle/castle.jpg'"
    obtained = "It is the release of 'Discovering States and Transformations in Image Collections' at MIT"

    def found(self) -> Sequence[str]:
        return [SUBSET] if self._folders else []

    def files(self) -> Sequence[Path]:
        """As `Reader.files`: none, as the digest is of the names."""
        return []

    def digest(self) -> str:
        """sha256 over the names of all test images, which say what they show."""
        return self.digest_of({folder.name: [path.name for path in files] for folder, files in self._folders.items()})

    def items(self, subset: str) -> Iterator[Item]:
        gallery: list[Picture] = []
        shown: dict[tuple[str, str], list[int]] = {}  # places by noun and adjective
        for folder, files in self._folders.items():
            adjective, noun = folder.name.split(" ")
            for path in files:
                picture = self.images.find(self.relative(path), str(path))
                if picture is None:  # a link to nothing
                    yield LeftOut(str(path), MISSING)
                    continue
                shown.setdefault((noun, adjective), []).append(len(gallery))
                gallery.append(picture)
        targets = {state: frozenset(places) for state, places in shown.items()}
        adjectives: dict[str, list[str]] = {}
        for noun, adjective in shown:
            adjectives.setdefault(noun, []).append(adjective)
        ranked = tuple(gallery)
        for (noun, adjective), places in shown.items():
            for place in places:
                name = Path(ranked[place].where).name
                for wanted in adjectives[noun]:
                    if wanted != adjective:
                        yield Query(
                            key=f"{adjective} {noun}/{name}/{wanted}",
                            subset=SUBSET,
                            group=f"{adjective} {noun}/{name}",
                            category=noun,
                            image=ranked[place],
                            text=wanted,
                            gallery=ranked,
                            targets=targets[noun, wanted],
                            excluded=frozenset({place}),
                        )

    @cached_property
    def _folders(self) -> Mapping[Path, list[Path]]:
        """Folders of test nouns in a known state, each with its images; both in alphabetical order."""
        for parent in FOLDERS:
            found = {}
            for folder in sorted((self.data / parent).glob("* *")):
                words = folder.name.split(" ")
                if len(words) == 2 and words[1] in NOUNS and words[0] != ANY_STATE and folder.is_dir():
                    files = sorted(path for path in folder.iterdir() if path.suffix.lower() in IMAGE_SUFFIXES)
                    if files:
                        found[folder] = files
            if found:
                return found
        return {}
