"""Settings of Prefect that lie in the working folder, looked at before Prefect is imported."""

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

from twinset.contracts.errors import WrongUse

#: The files that Prefect looks for, and whether one holds settings of Prefect.
_SETTINGS: Mapping[str, Callable[[str], bool]] = {
    "prefect.toml": lambda text: True,
    "pyproject.toml": lambda text: "prefect" in tomllib.loads(text).get("tool", {}),
    ".env": lambda text: re.search("prefect", text, re.IGNORECASE) is not None,
}


def refuse_settings_of_the_folder() -> None:
    """Raise `WrongUse` where Prefect would read settings from files of the working folder, which may be a download.

    They can name code: Prefect's configuration of logs does.
    """
    for name, in_it in _SETTINGS.items():
        try:
            found = in_it(Path(name).read_text("utf-8", "replace"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError, TypeError, RecursionError):
            found = True  # Prefect may read it otherwise
        if found:
            raise WrongUse(
                f"{Path(name).absolute()}: holds settings of Prefect, which can run code; start twinset in another "
                "folder, and set what you need as environment variables (PREFECT_...) or in a profile of Prefect"
            )
