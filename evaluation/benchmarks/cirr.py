"""CIRR: which image is meant by a reference and a text that changes it (Liu et al., 2021)."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from twinset.evaluation.benchmarks.json_items import json_items, list_of, object_of, text_of
from twinset.evaluation.benchmarks.reader import MISSING, Item, Reader
from twinset.evaluation.examples import LeftOut, Picture, Query
from twinset.manifests.errors import WrongUse

CAPTIONS = "cap.rc2.val.json"
SPLIT = "split.rc2.val.json"
GLOBAL, SUBSET = "global", "subset"


class Cirr(Reader):
    """Captions of the validation split, the one with public targets; images are NLVR2's dev images.

    ``global`` ranks all images of the split, without the reference; ``subset`` the other five members of the
    reference's set (Recall_subset). The target is ``target_hard``.
    """

    name = "cirr"
    title = "CIRR (2021), validation"
    citation = "https://arxiv.org/abs/2108.04024"
    expects = "captions/cap.rc2.val.json, image_splits/split.rc2.val.json, and the images dev-….png in a folder below"
    obtained = "Annotations: branch cirr_dataset of the repository Cuberick-Orion/CIRR; images: from NLVR2's authors"

    def found(self) -> Sequence[str]:
        return [GLOBAL, SUBSET] if self._captions() is not None else []

    def files(self) -> Sequence[Path]:
        return [path for path in (self._captions(), self._split()) if path is not None]

    def items(self, subset: str) -> Iterator[Item]:
        path = self._captions()
        assert path is not None
        names = self._names(path)
        found = {name: self.images.find(name, str(path)) for name in names}
        there = {name: picture for name, picture in found.items() if picture is not None}
        if subset == GLOBAL:
            for name in sorted(found.keys() - there.keys()):
                yield LeftOut(f"{path}: {name}", "missing gallery image")
        everything, places = tuple(there.values()), {name: at for at, name in enumerate(there)}
        for number, record in json_items(path):
            where = f"{path} record {number}"
            members = _members(record, where)
            reference, target = text_of(record, "reference", where), text_of(record, "target_hard", where)
            wanted = {reference, target} if subset == GLOBAL else {reference, *members}
            if absent := sorted(wanted - there.keys()):
                if absent[0] not in found:
                    raise WrongUse(f"{where}: {absent[0]!r} is no image of {SPLIT}; fetch both files again")
                yield LeftOut(f"{where}: {absent[0]}", MISSING)
                continue
            gallery: tuple[Picture, ...] = everything
            at: Mapping[str, int] = places
            if subset == SUBSET:
                gallery, at = tuple(there[name] for name in members), {name: n for n, name in enumerate(members)}
            if not {reference, target} <= at.keys() or reference == target:
                raise WrongUse(f"{where}: reference and target are not two images of its gallery; fetch it again")
            yield Query(
                key=f"{subset}/{_number(record, 'pairid', where)}",
                subset=subset,
                group=f"set-{_number(object_of(record['img_set'], where), 'id', where)}",
                image=there[reference],
                text=text_of(record, "caption", where),
                gallery=gallery,
                targets=frozenset({at[target]}),
                excluded=frozenset({at[reference]}),
            )

    def _names(self, path: Path) -> Sequence[str]:
        """All images of the split; without its list, all that captions name, which are the same ones in the release."""
        if (split := self._split()) is not None:
            return [name for name, _ in json_items(split)]
        records = ((number, record) for number, record in json_items(path))
        return sorted({name for number, record in records for name in _members(record, f"{path} record {number}")})

    def _captions(self) -> Path | None:
        return self.in_folders(CAPTIONS, "", "captions", "cirr/captions")

    def _split(self) -> Path | None:
        return self.in_folders(SPLIT, "", "image_splits", "cirr/image_splits")


def _members(record: Any, where: str) -> list[str]:
    members = list_of(object_of(record, where).get("img_set"), "members", where)
    if not all(isinstance(name, str) for name in members):
        raise WrongUse(f"{where}: a member of img_set is not text; fetch the file again")
    return members


def _number(record: Mapping[str, Any], field: str, where: str) -> int:
    value = record.get(field)
    if not isinstance(value, int):
        raise WrongUse(f"{where}: no number in the field {field!r}; fetch the file again")
    return value
