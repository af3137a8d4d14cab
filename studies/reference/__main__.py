"""Writes docs/reference: ``python -m studies.reference``, which `make reference` runs."""

from pathlib import Path

from studies.reference.pages import pages

FOLDER = Path(__file__).parents[2] / "docs" / "reference"


def main() -> None:
    """Write every page, and remove those that are none any more."""
    written = pages()
    FOLDER.mkdir(exist_ok=True)
    for path in FOLDER.glob("*.md"):
        if path.name not in written:
            path.unlink()
    for name, text in written.items():
        (FOLDER / name).write_text(text, "utf-8")
        print(FOLDER / name)


if __name__ == "__main__":
    main()
