"""A process that makes shards for another one ends when that one does, however it ends."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

PARENT_CHECK_SECONDS = 1.0


def end_with_parent(parent: int, last: Callable[[], None] = lambda: None) -> None:
    """Have this process end, with exit code 1, soon after its parent has: it would wait for work for ever.

    parent: the parent's process id, as the parent gave it: it may have ended before this process could ask. last: what
    is done before, such as removing temporary files, in a thread beside what is at work.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK_SECONDS)
        last()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
