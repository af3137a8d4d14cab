"""YAML from strangers: safe load, and nothing that a reader would take for something else or that outgrows its file."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

import yaml

MOST_BYTES = 1_000_000  # a recipe of a hundred subsets has 50,000


def load_yaml(content: str | bytes) -> Any:
    """The value of one YAML document; raises `yaml.YAMLError`, one line with place and reason, where it is not plain.

    Refused besides what safe load refuses: repeated and merge keys (one would win silently), aliases (a kilobyte can
    hold 10^10 of them), half surrogate pairs (cannot be written), numbers in base 60 (1:30 is 90; long ones take
    quadratic time), more than `MOST_BYTES`. Values nested too deep raise RecursionError.
    """
    if len(content) > MOST_BYTES:
        raise yaml.YAMLError(f"longer than {MOST_BYTES:,} bytes")
    try:
        value = yaml.load(content, _StrictLoader)
        json.dumps(value, ensure_ascii=False, default=str).encode()  # half surrogate pairs are no text
        return value
    except yaml.YAMLError as error:
        raise yaml.YAMLError(" ".join(str(error).split())) from error
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        # What PyYAML lets through of `!!bool x`, `!!timestamp x`, 2026-99-99 or a number of 5,000 digits.
        raise yaml.YAMLError(f"a value is not what its tag says ({error})") from error


def value_at(raw: Any, keys: Iterable[str]) -> Any:
    """The value at a key path of plain values; None where there is none."""
    for key in keys:
        try:
            raw = raw[int(key) if isinstance(raw, list) and key.isdecimal() else key]
        except (LookupError, TypeError, ValueError):
            return None
    return raw


class _StrictLoader(yaml.SafeLoader):
    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "found an alias (*name); write its value out", mark)
        return super().compose_node(parent, index)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        value = super().construct_scalar(node)
        if ":" in str(value) and node.tag.endswith((":int", ":float")):
            raise _refused("a number in base 60; put quotes round it", node)
        return value

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        if isinstance(node, yaml.MappingNode):
            keys = Counter((key.tag, key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode))
            if ("tag:yaml.org,2002:merge", "<<") in keys:
                raise _refused("a merge key (<<), which would hide repeated keys; write its keys out", node)
            for (_, key), times in keys.most_common(1):
                if times > 1:
                    raise _refused(f"the key {key!r} twice", node)
        return super().construct_mapping(node, deep)


def _refused(what: str, node: yaml.Node) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, f"found {what}", node.start_mark)
