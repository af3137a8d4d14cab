"""``twinset train demo``: a small model on painted twins, without any download."""

import argparse
from typing import Any

from twinset.cli.options import add_command, answer
from twinset.cli.train.run import progress, tell
from twinset_demo.folders import add_demo_folders


def add(commands: Any) -> None:
    """Add the command to the subparsers of ``twinset train``."""
    text = "build painted twins and train a small model on them: minutes on two cores, no download"
    touring = add_command(commands, "demo", demo, text)
    add_demo_folders(touring, "the twins", "out/train-demo-data", "out/train-demo")


def demo(asked: argparse.Namespace) -> None:
    """``twinset train demo``."""
    import twinset
    from twinset.cli.bars import bars
    from twinset_demo.train_demo import RECIPE, demo_recipe, demo_settings

    with bars() as shown:
        twinset.build(RECIPE, str(asked.data), progress=shown, **demo_recipe())
    with progress() as on_progress:
        settings = demo_settings(asked.data)
        found = twinset.train(settings.pop("data"), asked.out, on_progress=on_progress, **settings)
    answer(asked, found, lambda: tell(found))
