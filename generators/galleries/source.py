"""The settings of GeneCIS's four tasks, and what its cards say of each (GeneCIS, sections 4 and A.1)."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from twinset.generators.image_files import IMAGE_REASONS, ImageFolderSource
from twinset.generators.papers import GENECIS
from twinset.manifests.locations import Location
from twinset.manifests.references import bibtex
from twinset.manifests.source import Place, Reference

Task = Literal["focus", "change"]


class Templates(ImageFolderSource):
    """A task of the benchmark.

    task: whether the condition names what to focus on, or what changes. annotations: the dataset's annotation file.
    media: folder of its images. licence: of these, copied into every sample and the card.
    """

    task: Task

    generator = "twinset.generators.galleries.generator:TemplateGenerator"
    makes = "template"
    paper = GENECIS
    #: By task: its name, the question that it asks, and how its templates are made.
    tasks: ClassVar[Mapping[Task, tuple[str, str, str]]]
    #: What no count tells of the templates of either task.
    limits: ClassVar[str]

    def introduction(self) -> str:
        """The task's name and question."""
        name, question, _ = self.tasks[self.task]
        return f'The task is GeneCIS\'s "{name}": {question}'

    def how_made(self, reports: Mapping[str, Any]) -> str:
        """How the paper makes the task's templates."""
        return self.tasks[self.task][2]

    def notes(self) -> str:
        """What no count tells of the task's templates."""
        change = "* A change has a direction: reference and target cannot be swapped.\n"
        return self.limits + (change if self.task == "change" else "")


class AttributeTemplates(Templates):
    """Focus on, or change, an attribute of an object: crops of Visual Genome images by VAW's annotations.

    taxonomy: JSON file of attribute types, each with its attributes. crops: how a box grows before it is cut out,
    ``corrected`` to all sides as the paper says, or ``published`` as the authors' code has it.
    """

    kind: Literal["genecis-attributes"]
    taxonomy: Annotated[Location, Place("file", "annotations")]
    crops: Literal["corrected", "published"] = "corrected"
    licence: str = "VAW annotations, Adobe Research License, non-commercial; Visual Genome images, CC BY 4.0"

    reference = Reference("VAW", "https://vawdataset.com", bibtex("pham2021vaw", "krishna2017visual"))
    reasons: ClassVar[Mapping[str, str]] = {
        **IMAGE_REASONS,
        "box-outside": "no part of an object's box lies in its image",
        "instance-malformed": "instances that are not objects with ids, a name and two lists of attributes",
        "instance-repeated": "instances with an id that came before; the first counts",
        "instance-without-box": "instances whose box is not four numbers, has no area or cannot lie in a picture",
        "attribute-unknown": "attributes of instances that the taxonomy does not have",
        "attribute-contradicted": "attributes both said and denied of one instance; neither is believed",
        "reference-without-gallery": "references for which no target, or too few distractors, were found",
    }
    tasks: ClassVar[Mapping[Task, tuple[str, str, str]]] = {
        "focus": (
            "Focus on an Attribute",
            "which image of the gallery shows the object with the same attribute of the type that the condition names?",
            """\
Reference and target are one object with one attribute; the condition is the type of that attribute. The nine
distractors are the same object, labelled not to have the attribute.
""",
        ),
        "change": (
            "Change an Attribute",
            "which image of the gallery shows the reference's object, but with the attribute that the condition names?",
            """\
Reference and target are one object with different attributes of one type; the condition is the target's. Nine
distractors are other objects with that attribute, five are the reference's object, labelled not to have it.
""",
        ),
    }
    limits = """\
* Attributes are people's opinions (wide, narrow), and what nobody labelled is not known: lacking one always means that
  somebody said so.
"""

    def how_made(self, reports: Mapping[str, Any]) -> str:
        """As `Templates.how_made`, and how objects are cut out."""
        return super().how_made(reports) + _CROPS[self.crops]


_CROPS = {
    "corrected": """
`crops: corrected`: each object is cut out with its surroundings; its box is made 1.7 times as wide and high around its
centre, 0.35 of its size on each side. The released evaluation (`crops: published`) moves the box by 0.7 of its size to
the left and the top instead: it shows twice as much there, and nothing to the right of the object or below it, unless
the border of the image is near. All are padded to squares with black. The released evaluation reads boxes, and cuts for
itself.
""",
    "published": """
`crops: published`: each object is cut out as the released evaluation does it; its box is made 1.7 times as wide and
high and moved by 0.7 of its size to the left and the top: nothing is seen to the right of the object or below it,
unless the border of the image is near. `crops: corrected` grows the box by 0.35 of its size on each side. All are
padded to squares with black.
""",
}


class ObjectTemplates(Templates):
    """Focus on, or change, an object of a scene: whole images of COCO by its panoptic annotations."""

    kind: Literal["genecis-objects"]
    licence: str = "COCO annotations, CC BY 4.0; images of Flickr, their owners' terms"

    reference = Reference(
        "COCO Panoptic", "https://cocodataset.org/#panoptic-2018", bibtex("lin2014coco", "kirillov2019panoptic")
    )
    reasons: ClassVar[Mapping[str, str]] = {
        **IMAGE_REASONS,
        "image-malformed": "images without an id of their own, a size or the name of a file in the folder",
        "annotation-malformed": "annotations without an image of their own, or with segments that cannot be right",
        "reference-few-categories": "images of less than ten categories, which cannot be a reference",
        "reference-without-gallery": "references for which no target, or too few distractors, were found",
    }
    tasks: ClassVar[Mapping[Task, tuple[str, str, str]]] = {
        "focus": (
            "Focus on an Object",
            "which image of the gallery shows a scene like the reference's, with the one of its objects that is named?",
            """\
A reference shows at least ten categories. The target shares at least six of them, but not all; the condition is one of
those shared. Nine distractors are as near, but without that object; five are far from the scene, but with it.
""",
        ),
        "change": (
            "Change an Object",
            "which image of the gallery shows a scene like the reference's, and also what the condition names?",
            """\
A reference shows at least ten categories. The target shares at least six of them, but not all; the condition is one
that the reference lacks. Nine distractors are as near, but without that object; five are far from the scene, but with
it.
""",
        ),
    }
    limits = """\
* A pixel has one category, whatever else it shows (a ceiling light is a ceiling or a light), and what takes no more
  than 1 % of an image does not count as seen.
"""
