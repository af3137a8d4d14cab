"""Labels that were corrected after a benchmark's release: versioned files, applied to the released files as they lie.

A reader that names one asks the corrected benchmark; the released one keeps its name, so a report has both.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pydantic
import yaml

from twinset.contracts.canonical import digest
from twinset.contracts.errors import WrongUse

Read = tuple[str, str, Mapping[str, Any]]  # place, number and fields of a record


class Correction(pydantic.BaseModel):
    """One file: ``NAME.yaml`` beside this module.

    identity: field that tells which record; field: that is corrected; changes: by identity, as released and as
    corrected. source: where it was found.
    """

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    version: int
    source: str
    identity: str
    field: str
    changes: dict[str, tuple[str, str]]

    def digest(self) -> str:
        """sha256 of what is changed, for the digest of the benchmark."""
        return digest(self.model_dump())

    def applied(self, path: Path, records: Iterator[Read]) -> Iterator[Read]:
        """The records of a file with the changes.

        Raises:
            WrongUse: a label is not the released one, or a record that is changed is absent.
        """
        left = dict(self.changes)
        for place, number, fields in records:
            released, corrected = left.pop(str(fields.get(self.identity)), (None, None))
            if corrected is not None:
                if (held := fields.get(self.field)) != released:
                    raise WrongUse(
                        f"{path} {place}: {self.field!r} is {held!r}, and the release has {released!r}: this file is "
                        "another version, perhaps corrected already; read it under the benchmark's own name"
                    )
                fields = {**fields, self.field: corrected}
            yield place, number, fields
        if left:
            raise WrongUse(f"{path}: no record with {self.identity!r} {', '.join(left)}; fetch the file again")


def correction_of(name: str) -> Correction:
    """The correction of a name."""
    return Correction.model_validate(yaml.safe_load(Path(__file__).with_name(f"{name}.yaml").read_text("utf-8")))
