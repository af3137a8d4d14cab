"""Options of the programs among the tests."""

import argparse


def options(doc: str | None, **defaults: str | int | float | bool) -> argparse.Namespace:
    """Read the command line: an option for each default, of its type; a flag for False. doc: what help shows."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in defaults.items():
        option = f"--{name.replace('_', '-')}"
        if default is False:
            parser.add_argument(option, action="store_true")
        else:
            parser.add_argument(option, type=type(default), default=default, help="default: %(default)s")
    return parser.parse_args()
