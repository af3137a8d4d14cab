"""Zero-shot classification: folders of images, one a class; each image asks for the name of its class."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from twinset import WrongUse
from twinset.evaluation.benchmarks.pictures import image_folders
from twinset.evaluation.benchmarks.reader import MISSING, Item, Reader, all_alike
from twinset.evaluation.examples import Ensemble, LeftOut, Query
from twinset.generators.annotation_files import Skipped, lines

SYNSET = re.compile(r"n\d{8}")
NAMES = "classnames.txt"


class ImageNet(Reader):
    """``val/n01440764/….JPEG``, or any folder of classes; its accuracy is recall@1 (Deng et al., 2009).

    Names and templates are open_clip's (OpenAI's 80), of all synsets or of folders ``0`` to ``999`` as ImageNetV2 has
    them. Other folders are called as they are, with spaces for underscores, or as ``classnames.txt`` says: a line
    ``FOLDER NAME`` each. The feature of a class is the mean over templates; models that score pairs are asked with the
    first template alone.
    """

    name = "imagenet"
    title = "ImageNet (2009), zero-shot"
    citation = "https://doi.org/10.1109/CVPR.2009.5206848"
    licence = "research only"
    counts: ClassVar = {"val": 50000}
    expects = f"a folder val with a folder of images for each class; {NAMES} where they are some of ImageNet's"
    obtained = "ImageNet is at image-net.org, once its terms are accepted; move each image to the folder of its class"

    def found(self) -> Sequence[str]:
        return ["val"] if self._folders else []

    def annotations(self) -> Sequence[Path]:
        return [path for path in [self.data / NAMES] if path.is_file()]

    def digest(self) -> str:
        """sha256 over the names of all images and classes, and the templates."""
        files = {folder.name: [path.name for path in paths] for folder, paths in self._folders.items()}
        return self.digest_of([files, [entry.texts for entry in self._classes]])

    def items(self, subset: str) -> Iterator[Item]:
        for place, (folder, paths) in enumerate(self._folders.items()):
            targets = all_alike(self._classes, [place])
            for path in paths:
                picture = self.images.find(self.relative(path), str(path))
                if picture is None:  # a link to nothing
                    yield LeftOut(str(path), MISSING)
                    continue
                yield Query(
                    key=f"{folder.name}/{path.name}",
                    subset=subset,
                    group=f"{folder.name}/{path.name}",
                    category=folder.name,
                    image=picture,
                    text=None,
                    gallery=self._classes,
                    targets=targets,
                )

    @cached_property
    def _folders(self) -> Mapping[Path, list[Path]]:
        """Folders of classes, each with its images."""
        called = (self.data / NAMES).is_file()  # else any folder of folders of images would be taken for classes
        return image_folders(self.data, ("val", "imagenet/val"), lambda name: True) or image_folders(
            self.data, (".",), lambda name: called or name.isdecimal() or SYNSET.fullmatch(name) is not None
        )

    @cached_property
    def _classes(self) -> Sequence[Ensemble]:
        import open_clip  # type: ignore[import-untyped]  # and torch, so not above

        templates = open_clip.OPENAI_IMAGENET_TEMPLATES
        names = self._names([str(name) for name in open_clip.IMAGENET_CLASSNAMES])
        return tuple(Ensemble(template(name) for template in templates) for name in names)

    def _names(self, imagenets: Sequence[str]) -> Sequence[str]:
        """imagenets: names of its classes in the order of their numbers."""
        folders = [folder.name for folder in self._folders]
        if (path := self.data / NAMES).is_file():
            entries = [line.strip().partition(" ") for _, line in lines(path) if not isinstance(line, Skipped)]
            named = {folder: name.strip() for folder, _, name in entries}
            if missing := [folder for folder in folders if not named.get(folder)]:
                raise WrongUse(f"{path}: no name of the class {missing[0]!r}; write a line '{missing[0]} NAME'")
            return [named[folder] for folder in folders]
        numbers = [int(folder) for folder in folders if folder.isdecimal()]
        if len(folders) == len(imagenets) and sorted(numbers) == [*range(len(imagenets))]:
            return [imagenets[number] for number in numbers]
        known = sum(SYNSET.fullmatch(folder) is not None for folder in folders)
        if known == len(folders) == len(imagenets):
            return imagenets
        if known := known + len(numbers):
            raise WrongUse(
                f"{self.place}: {known:,} of its {len(folders):,} folders are called by numbers, and ImageNet has "
                f"{len(imagenets):,}; write {NAMES} beside them, with a line 'FOLDER NAME' each"
            )
        return [folder.replace("_", " ") for folder in folders]
