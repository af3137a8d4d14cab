"""Chat templates: programs of Jinja that a model's folder brings. `transformers` runs them in a sandbox without code of
Python; here they are refused where they multiply, or take very many steps or much memory.
"""

import resource
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import FrameType
from typing import Any

import jinja2

from twinset.contracts.errors import WrongUse

LONGEST = 200_000  # characters beside those of the messages; templates of common models write some 1,000
MOST_MEMORY = 256 << 20  # bytes beyond what the process has: a text can be doubled forty times in as many steps
MOST_STEPS = 1_000_000  # lines of Python for a prompt, which takes a few hundred
REMEDY = "name a model whose template only writes down the messages"
TODAY = date(2024, 7, 26)  # for templates that write the day: what Llama 3.2's writes where it cannot ask for it
#: Stands before a template: prompts are the same every day.
DAY = "{%- macro strftime_now(form) -%}{{ form"
DAY += "".join(f" | replace('%{code}', '{TODAY:%{code}}')" for code in "aAbBdmyYHMS")
DAY += " }}{%- endmacro -%}"


def check_template(template: str | dict[str, str], place: Path) -> str:
    """A template, of several by name the default, to which it is always `TODAY`.

    Raises `WrongUse` where one multiplies: numbers would become huge within one step. It is not compiled: that computes
    what is constant.
    """
    for text in [template] if isinstance(template, str) else template.values():
        try:
            tokens = [value for _, kind, value in jinja2.Environment().lex(text) if kind == "operator"]
        except jinja2.TemplateSyntaxError as error:
            raise WrongUse(f"{place}: its chat template is no Jinja ({error.message}); {REMEDY}") from error
        if "*" in tokens or "**" in tokens:
            raise WrongUse(f"{place}: its chat template multiplies; {REMEDY}")
    used = template if isinstance(template, str) else template.get("default")
    if used is None:
        raise WrongUse(f"{place}: none of its chat templates is the default; {REMEDY}")
    return DAY + used


def bounded(write: Callable[[], str], place: Path, given: int) -> str:
    """The prompt that a template writes of messages with ``given`` characters.

    Raises `WrongUse` where that takes more than `MOST_STEPS` lines of Python or `MOST_MEMORY`, or is much longer. The
    bound on memory is of the whole process, for the milliseconds that a prompt takes.
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
        prompt = write()
    except MemoryError as error:
        raise WrongUse(f"{place}: its chat template takes more than {MOST_MEMORY >> 20} MiB; {REMEDY}") from error
    finally:
        sys.settrace(before)
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))
    if len(prompt) > LONGEST + given:
        raise WrongUse(f"{place}: its chat template makes {len(prompt):,} characters of a prompt; {REMEDY}")
    return prompt
