"""The small models of the demo, by the names that recipes and commands call them."""

from twinset.models.files import ModelFolder
from twinset_demo import HERE

#: A text-to-image model of a small world, in diffusers' layout.
SMALL = ModelFolder(
    HERE / "small",
    "twinset's small model",
    {
        "scheduler": "dpm-solver++",
        "steps": 20,
        "guidance": 3.0,
        "licence": "CC0-1.0",
        "vocabulary": "small-world",
        "self_replace_steps": 0.0,  # more self-attention makes edits fail and keeps no more
    },
    """\
* The model is twinset's own small one, which knows one drawn world: flat shapes of one colour before a plain
  ground, no texture, no people. A painting is a picture with a frame around it, nothing else. These pairs are for
  trying the tool; scores on them say little about photographs.
""",
    {"small-world": HERE / "small_world.yaml"},
    origin="Trained on 40,000 pictures that a program of twinset drew of captions that it wrote (CC0-1.0).",
)
#: A dual encoder in open_clip's layout, which knows painted scenes alone.
SMALL_CLIP = ModelFolder(
    HERE / "small_clip",
    "twinset's small CLIP",
    notes="It was trained on painted scenes to try the tool, and knows nothing of photographs.",
    scorer="open_clip",
    origin="Trained on scenes that a program of twinset painted, and their captions (CC0-1.0).",
)
