"""Attack: the chat template of a model's folder, a program in Jinja that never ends or fills the memory."""

import resource
from pathlib import Path

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from twinset.contracts.errors import WrongUse
from twinset.models.language_models.chat_templates import bounded, check_template

CHAT = [{"role": "user", "content": "hello"}]
HONEST = (
    "{% for m in messages %}{{ '<|' + m.role + '|>' }}{% if loop.index0 % 2 == 0 %}{{ m.content | trim }}{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
NESTED = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"


@pytest.mark.parametrize(
    "template",
    ["{{ 10 ** 10 ** 10 }}", "{{ 'x' * 999999 }}", "{{ 'x' | center(99999999) }}", "x" * 300_000, "{{ 2 * 3 }}"],
)
def test_a_template_that_makes_things_huge_is_refused_before_it_is_compiled(template: str) -> None:
    for one in (template, {"default": HONEST, "tool": template}):
        with pytest.raises(WrongUse, match=r"model: its chat template .*name a model whose"):
            check_template(one, Path("model"))


@pytest.mark.parametrize("template", [NESTED, "{{ range(99999) | map('string') | map('upper') | list | length }}" * 30])
def test_a_template_that_does_not_end_is_stopped(template: str) -> None:
    check_template(template, Path("model"))
    with (
        pytest.raises(WrongUse, match="model: its chat template takes more than 1,000,000 steps"),
        bounded(Path("model")),
    ):
        render_jinja_template([CHAT], chat_template=template)


DOUBLED = (
    "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}{{ ns.x }}"
)


@pytest.mark.parametrize("template", [DOUBLED, "{{ '{:999999999}'.format(3) }}", "{{ '%0999999999d' % 3 }}"])
def test_a_template_that_fills_the_memory_is_stopped(template: str) -> None:
    check_template(template, Path("model"))
    before = resource.getrlimit(resource.RLIMIT_DATA)
    with pytest.raises(WrongUse, match="model: its chat template takes more than 256 MiB"), bounded(Path("model")):
        render_jinja_template([CHAT], chat_template=template)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_an_honest_template_is_rendered() -> None:
    check_template(HONEST, Path("model"))
    with bounded(Path("model")):
        rendered, _ = render_jinja_template([CHAT], chat_template=HONEST, add_generation_prompt=True)
    assert rendered == ["<|user|>hello<|assistant|>"]
