"""What a file or folder of captions is read as, and tars to read."""

import io
import tarfile
from pathlib import Path

from twinset.generators.annotation_files import Skipped
from twinset.generators.captions.tables import Caption, caption_source


def read(path: Path) -> tuple[str, list[tuple[str, str, str, str]], list[tuple[str, str]]]:
    """The kind; id, image, text and file of every caption; place and reason of what was left out."""
    source = caption_source(path)
    found = list(source.read())
    captions = [(c.caption_id, c.image_id, c.caption, c.image) for c in found if isinstance(c, Caption)]
    return source.kind, captions, [(one.place, one.reason) for one in found if isinstance(one, Skipped)]


def write_tar(path: Path, files: dict[str, bytes] | list[tuple[str, bytes]]) -> None:
    with tarfile.open(path, "w") as tar:
        for name, content in files.items() if isinstance(files, dict) else files:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
