"""The cases of the contract of benchmarks (tests/guard/contracts/test_benchmarks.py)."""

import tests.extras.benchmarks.made_layouts as layouts
from tests.evaluation.benchmarks.made_layouts import Case

CASES = {
    "vsr": Case(layouts.vsr, {"random": 2}),
    "imagenet": Case(layouts.imagenet, {"val": 4}, images="own"),
    "colorswap": Case(layouts.colorswap, {"train": 2, "test": 2}),
    "vismin": Case(layouts.vismin, {"test": 3}, images="inside"),
    "cola": Case(layouts.cola, {"multi-objects": 3}),
    "cola-single": Case(layouts.cola_single, {"gqa": 2, "paco": 2}, {"no right image": 2}),
    "coco-counterfactuals": Case(layouts.coco_counterfactuals, {"test": 2}),
    "mmvp": Case(layouts.mmvp, {"test": 2}),
    "mmvp-corrected": Case(layouts.mmvp_corrected, {"test": 140}),
    "mmvp-vlm": Case(layouts.mmvp_vlm, {"test": 2}),
    "naturalbench": Case(layouts.naturalbench, {"test": 2}),
    "whatsup": Case(layouts.whatsup, {"a": 4, "coco-one": 1}),
    "sugarcrepe++": Case(layouts.sugarcrepe_pp, {"replace_att": 2, "swap_obj": 2}),
    "spec": Case(layouts.spec, {"absolute-size-i2t": 3, "absolute-size-t2i": 3}),
    "vl-checklist": Case(layouts.vl_checklist, {"attribute-vaw-size": 2, "relation-action": 1}),
}
