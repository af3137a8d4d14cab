"""Options of the programs among the tests."""

import argparse
from collections.abc import Collection


def options(doc: str | None, names: Collection[str] = (), **defaults: str | int | float | bool) -> argparse.Namespace:
    """Read the command line.

    Args:
        names: that may be given; all of them where none is.
        defaults: an option for each, of its type; a flag for False.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    if names:
        parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(names)} (default: all)")
    for name, default in defaults.items():
        option = f"--{name.replace('_', '-')}"
        if default is False:
            parser.add_argument(option, action="store_true")
        else:
            parser.add_argument(option, type=type(default), default=default, help="default: %(default)s")
    given = parser.parse_args()
    if names:
        given.names = given.names or [*names]
        if unknown := sorted({*given.names} - {*names}):
            parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(names)}")
    return given
