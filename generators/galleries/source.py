"""The settings of GeneCIS's four tasks, and what its cards say of each (GeneCIS, sections 4 and A.1)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from twinset.contracts.licences.names import UNKNOWN
from twinset.contracts.licences.terms import DerivingTerms
from twinset.contracts.locations import Location
from twinset.contracts.references import Reference, bibtex, reasons_beside
from twinset.contracts.source import Place
from twinset.generators.image_files import IMAGE_REASONS, ImageFolderSource
from twinset.generators.papers import GENECIS

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
    card_template = Path(__file__).with_name("card.md.j2")


class AttributeTemplates(DerivingTerms, Templates):
    """Focus on, or change, an attribute of an object: crops of images by annotations in VAW's form.

    taxonomy: JSON file of attribute types, each with its attributes. crops: how a box grows before it is cut out,
    ``corrected`` to all sides as the paper says, or ``published`` as the authors' code has it.
    """

    kind: Literal["genecis-attributes"]
    taxonomy: Annotated[Location, Place("file", "annotations")]
    crops: Literal["corrected", "published"] = "corrected"
    licence: str = UNKNOWN

    reference = Reference("VAW", "https://vawdataset.com", bibtex("pham2021vaw", "krishna2017visual"))
    reasons: ClassVar[Mapping[str, str]] = {**IMAGE_REASONS, **reasons_beside(__file__, "attributes")}


class ObjectTemplates(Templates):
    """Focus on, or change, an object of a scene: whole images by panoptic annotations in COCO's form."""

    kind: Literal["genecis-objects"]
    licence: str = UNKNOWN

    reference = Reference(
        "COCO Panoptic", "https://cocodataset.org/#panoptic-2018", bibtex("lin2014coco", "kirillov2019panoptic")
    )
    reasons: ClassVar[Mapping[str, str]] = {**IMAGE_REASONS, **reasons_beside(__file__, "objects")}
