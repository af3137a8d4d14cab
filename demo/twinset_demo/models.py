"""The small models that the demo brings, by the names that recipes and commands call them: their folders lie here."""

from pathlib import Path

from twinset.models.files import ModelFolder

HERE = Path(__file__).parent
DIFFUSION = {
    "scheduler": "dpm-solver++",
    "steps": 20,
    "guidance": 3.0,
    "licence": "CC0-1.0",
}


def not_two_things(caption: str) -> str:
    """Why the model of two things would draw something else; empty where it can read the caption."""
    from twinset_demo.small_diffusion.relations import read_arrangement

    try:
        read_arrangement(caption)
    except ValueError as error:
        return str(error)
    return ""


#: A text-to-image model of a small world, in diffusers' layout.
SMALL = ModelFolder(
    HERE / "small_diffusion" / "model",
    "twinset's small model",
    # More self-attention makes edits fail and keeps no more, as its card says
    {**DIFFUSION, "vocabulary": "small-world", "self_replace_steps": 0.0, "blend": True},
    """\
* The model is twinset's own small one, which knows one drawn world: flat shapes of one colour before a plain
  ground, no texture, no people. A painting is a picture with a frame around it, nothing else. These pairs are for
  trying the tool; scores on them say little about photographs.
""",
    {"small-world": HERE / "small_diffusion" / "small_world.yaml"},
    origin="Trained on 40,000 pictures that a program of twinset-demo drew of captions that it wrote (CC0-1.0).",
)
#: Its sister, which draws two things and how they stand to each other.
SMALL_RELATIONS = ModelFolder(
    HERE / "small_diffusion" / "relations_model",
    "twinset's small model of two things",
    DIFFUSION,
    vocabularies={},
    refuses=not_two_things,
    origin="Trained on pictures of two things that a program of twinset-demo drew of captions that it wrote (CC0-1.0).",
)
#: A dual encoder in open_clip's layout, which knows painted scenes alone.
SMALL_CLIP = ModelFolder(
    HERE / "small_clip",
    "twinset's small CLIP",
    notes="It was trained on painted scenes to try the tool, and knows nothing of photographs.",
    scorer="open_clip",
    origin="Trained on scenes that a program of twinset-demo painted, and their captions (CC0-1.0).",
)
