"""Check that templates keep the rules of their task: GeneCIS's own files, or those that `twinset export` wrote.

    python -m studies.galleries.check change_object.json --annotations panoptic_val2017.json
    python -m studies.galleries.check focus_attribute.json --annotations test.json \
        --taxonomy attribute_types.json

The file's name tells the task. Without annotations only the entries themselves are checked. Exit codes: 0 all rules are
kept, 1 some are broken, 2 wrong use.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from studies.galleries.annotated_invariants import AttributeRules, ObjectRules
from studies.galleries.invariants import Problem, check
from twinset.contracts.errors import WrongUse
from twinset.contracts.parts import LeftOut
from twinset.generators.annotation_files import read_json
from twinset.generators.galleries.drafts import DISTRACTORS, Task
from twinset.generators.galleries.panoptic import read_scenes
from twinset.generators.galleries.vaw import read_instances, read_taxonomy

SHOWN = 5  # problems of each rule


def check_file(
    templates: Path, annotations: Path | None = None, taxonomy: Path | None = None
) -> tuple[int, list[Problem]]:
    """Check a file of templates.

    Returns:
        number of templates, and their problems in the order of the file.

    Raises:
        WrongUse: the file is of no task, or has another shape.
    """
    tasks: dict[str, Task] = {f"{task.replace('-', '_')}.json": task for task in DISTRACTORS}
    if templates.with_suffix(".json").name not in tasks:
        raise WrongUse(f"{templates}: the name tells the task; call it {' or '.join(tasks)}")
    entries, task = read_json(templates), tasks[templates.with_suffix(".json").name]
    if not isinstance(entries, list):
        raise WrongUse(f"{templates}: no list of templates; name a file of GeneCIS, or one that twinset export wrote")
    if (taxonomy is not None) != (annotations is not None and task.endswith("attribute")):
        raise WrongUse("--taxonomy goes with the --annotations of attributes, and they need it")
    if annotations is None:
        return len(entries), check(entries, task)
    if taxonomy is None:
        scenes = read_scenes(annotations, LeftOut())
        return len(entries), check(entries, task, ObjectRules(scenes), scenes.names)
    types = read_taxonomy(taxonomy)
    attributes = {name for names in types.values() for name in names}
    rules = AttributeRules(read_instances(annotations, types, LeftOut()), types)
    return len(entries), check(entries, task, rules, set(types) if task == "focus-attribute" else attributes)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how many, the problems by rule, then the first of each rule with their template's number in the file."""
    parser = argparse.ArgumentParser(prog="python -m studies.galleries.check", description=__doc__.split("\n")[0])
    parser.add_argument("templates", type=Path, metavar="TASK.json")
    parser.add_argument("--annotations", type=Path, help="of VAW or COCO Panoptic, that the templates were made from")
    parser.add_argument("--taxonomy", type=Path, help="VAW's types of attributes")
    given = parser.parse_args(arguments)
    try:
        count, problems = check_file(given.templates, given.annotations, given.taxonomy)
    except WrongUse as error:
        print(error, file=sys.stderr)
        return 2
    counted = {"template": count, "problem": len(problems)}
    print(", ".join(f"{number:,} {what}{'s' * (number != 1)}" for what, number in counted.items()))
    for rule, count in sorted(Counter(problem.rule for problem in problems).items()):
        print(f"{rule}: {count:,}")
    shown: Counter[str] = Counter()
    for problem in problems:
        shown[problem.rule] += 1
        if shown[problem.rule] <= SHOWN:
            print(f"template {problem.template}: {problem.rule}, {problem.detail}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
