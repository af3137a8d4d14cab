"""What tests of publishing share."""

import hashlib

from twinset.cli.main import main

SAID = ('authors=["Doe, Jane", The shades group]', 'citation="@misc{shades, title = {Shades}}"', "date=2026-11-26")


def run(*arguments: object) -> int:
    return main(["publish", *map(str, arguments)])


def is_whole(files: dict[str, bytes]) -> bool:
    """Whether files are those that their checksums name, which are all but those of the Hub itself."""
    sums = dict(reversed(line.split("  ")) for line in files["SHA256SUMS"].decode().splitlines())
    return sums == {
        path: hashlib.sha256(content).hexdigest()
        for path, content in files.items()
        if path not in ("SHA256SUMS", ".gitattributes")
    }
