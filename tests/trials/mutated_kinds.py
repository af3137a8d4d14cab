"""The kinds of inputs that are mutated, by name; each is one line in the `KINDS` of a module here."""

from tests.trials import mutated_data, mutated_evaluation, mutated_outs, mutated_parts

MODULES = (mutated_data, mutated_evaluation, mutated_outs, mutated_parts)
KINDS = {kind.name: kind for module in MODULES for kind in module.KINDS}
