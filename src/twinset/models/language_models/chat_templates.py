"""Chat templates: programs of Jinja that a model's folder brings. `transformers` runs them in a sandbox without code of
Python, but for as long as they like; here their steps are counted, their memory has a bound, and what makes numbers
huge is refused.
"""

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import jinja2
from jinja2 import nodes

from twinset.contracts.errors import WrongUse

LONGEST = 200_000  # characters; the longest of common models has 20,000
LARGEST = 1_000_000  # a number
MOST_MEMORY = 256 << 20  # bytes beyond what the process has: a text can be doubled forty times in as many steps
MOST_STEPS = 1_000_000  # lines of Python for the prompts of a batch; a prompt takes a few hundred
REMEDY = "name a model whose template only writes down the messages"


def check_template(template: str | dict[str, str], place: Path) -> None:
    """Raise `WrongUse` for a template, or one of several by name, that is very long or multiplies. It is not run, and
    not compiled either: compiling computes what is constant.
    """
    for one in [template] if isinstance(template, str) else template.values():
        if len(one) > LONGEST:
            raise WrongUse(f"{place}: its chat template has {len(one):,} characters; {REMEDY}")
        try:
            parsed = jinja2.Environment(extensions=["jinja2.ext.loopcontrols", "jinja2.ext.do"]).parse(one)
        except (jinja2.TemplateSyntaxError, RecursionError):
            continue  # `transformers` knows more tags, and says what is wrong
        if (
            parsed.find(nodes.Mul)
            or parsed.find(nodes.Pow)
            or any(isinstance(held.value, int) and abs(held.value) > LARGEST for held in parsed.find_all(nodes.Const))
        ):
            raise WrongUse(f"{place}: its chat template multiplies or has numbers over {LARGEST:,}; {REMEDY}")


@contextmanager
def bounded(place: Path) -> Iterator[None]:
    """Raise `WrongUse` where what is done meanwhile takes more than `MOST_STEPS` lines of Python, or `MOST_MEMORY`.

    The bound on memory is of the whole process, for the milliseconds that prompts take.
    """
    left, before = MOST_STEPS, sys.gettrace()

    def step(_frame: FrameType, _event: str, _argument: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            raise WrongUse(f"{place}: its chat template takes more than {MOST_STEPS:,} steps; {REMEDY}")
        return step

    held = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    least = min(limit for limit in (soft, hard, held + MOST_MEMORY) if limit != resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_DATA, (least, hard))
    sys.settrace(step)
    try:
        yield
    except MemoryError as error:
        raise WrongUse(f"{place}: its chat template takes more than {MOST_MEMORY >> 20} MiB; {REMEDY}") from error
    finally:
        sys.settrace(before)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
