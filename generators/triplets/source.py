"""The settings of GeneCIS's training triplets, and what their card says (GeneCIS, section 5.2)."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from twinset.generators.image_files import IMAGE_REASONS, SAME_IMAGE
from twinset.generators.papers import GENECIS
from twinset.manifests.errors import WrongUse
from twinset.manifests.locations import Location
from twinset.manifests.markdown import plain, short, table
from twinset.manifests.references import bibtex
from twinset.manifests.source import Need, Place, Reference, StageName
from twinset.models.device import check_installed
from twinset.shards.contracts import Source
from twinset.shards.media.media_folder import ImageFolder, Media

MINING = "mining.json"
OVERWRITTEN, FREQUENT = 5, 8  # words that the card names


class Triplets(Source):
    """Reference, target and condition, mined from the relations of captions.

    graphs: the stage of scene graphs that they are mined from, or the folder of a finished one. concreteness: file of
    ratings (Brysbaert et al. 2014, tab-separated).
    images: folder of the captions' images, or of tars of them; only an index of triplets is made when absent.
    rules: ``strict``, or ``published`` as the authors' code has it; the card says what differs. threshold: that
    the mean concreteness of a triplet must be above. min_images: images that a subject needs. min_support: photos
    whose captions must relate a subject to an object, and that must say of it what a condition says, under the strict
    rules. max_unsaid: strict too: the largest share of references (0 to 1) that may show a target's object although
    their captions do not say so, as estimated from images of several captions; 1 sets no limit, neither on this share
    nor on how often captions leave an object out.
    distractors: whether an image that fits the condition, but not the reference, is stored too.
    licence: of captions and images, copied into every sample and the card.
    """

    kind: Literal["genecis-triplets"]
    graphs: StageName
    concreteness: Annotated[Location, Place("file", "annotations")]
    images: Annotated[Location, Place("folder", "media")] | None = None
    rules: Literal["strict", "published"] = "strict"
    threshold: float = Field(default=4.8, ge=-1, lt=5)
    min_images: int = Field(default=5, ge=2)
    min_support: int = Field(default=2, ge=1)
    max_unsaid: float = Field(default=0.03, ge=0, le=1)
    distractors: bool = False
    licence: str

    generator = "twinset.generators.triplets.generator:TripletGenerator"
    makes = "triplet"
    reference = Reference("captions", bibtex=bibtex("brysbaert2014concreteness"))
    paper = GENECIS
    group = "triplet"
    verb = "mined from"
    unbounded = True
    reports = (MINING,)
    reasons: ClassVar[Mapping[str, str]] = {
        **IMAGE_REASONS,
        **SAME_IMAGE,
        "no-triplet": "draws of which no try gave a triplet that the rules let pass",
    }

    def how_made(self, reports: Mapping[str, Any]) -> str:
        """As `SourceSettings.how_made`; counts of the mining where ``mining.json`` is at hand."""
        words, exception = "subject and object of reference and target", ""
        if self.rules == "published":
            words = "subject and object of reference, target and distractor"
            exception = " (of 101 tries the last one passes, whatever it is)"
        text = _STEPS.format(min_images=self.min_images, threshold=self.threshold, words=words, exception=exception)
        if self.distractors:
            text += _DISTRACTOR
        elif self.rules == "published":
            text += _UNSTORED
        text += _NUMBERS
        text += _RULES.format(
            rules=self.rules,
            distractor=_SUBJECTLESS if self.distractors else "",
            reliable=_RELIABLE if self.max_unsaid < 1 else "",
        )
        mining = reports.get(MINING)
        if mining is None:
            return text
        return text + _differences(mining.get("differences")) + _funnels(mining) + _refused(mining) + _frequent(mining)

    def notes(self) -> str:
        """What no count tells of mined triplets."""
        return _NOTES

    def media_files(self) -> Media | None:
        return ImageFolder(self.images) if self.images is not None else None

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        """As `Source.check_inputs`; also the form of the ratings, and whether what makes plurals is installed."""
        super().check_inputs(key, needs)
        if "annotations" in needs:
            from twinset.generators.triplets.ratings import load_ratings

            check_installed(key, ("inflect",), "text")
            try:
                load_ratings(self.concreteness, "strict")
            except WrongUse as error:
                raise WrongUse(f"{key}.concreteness: {error}") from error


_NOTES = """\
* Nobody has looked at them. A relation is what a parser made of a caption, and it is wrong at times; a caption leaves
  out most of what an image shows, so that a reference can satisfy its condition unsaid, and other images than the
  target can be as right. Good for training; a benchmark needs people, or annotations of everything shown.
* The data set of the captions is not cited below: the licence names it.
* Conditions ask for another thing that the same subject is with or acts on: a bias towards GeneCIS's task "Change an
  Object" (section 5.2).
"""
_STEPS = """1. A parser reads relations subject → predicate → object off every caption.
2. A subject that is seen in at least {min_images} images, with at least two objects, is sampled, the more often the
   more images it has; one of its relations is the *reference*.
3. The *target* is a relation of the same subject with another object, in another image{exception}.
4. The *condition* is predicate and object of the target, in the words of its caption.
5. Kept is what is concrete: the mean rating of {words} (1 to 5, in a file
   of ratings such as that of Brysbaert et al. 2014) must be above {threshold:g}.
"""
_DISTRACTOR = """\
6. The *distractor*, a hard negative, is a relation of another subject with the target's object, in another image.
"""
_UNSTORED = """\
6. These rules also sample a distractor, a relation of another subject with the target's object. It is not stored.
"""
_NUMBERS = """
Every triplet is sampled by its own number: asking for more keeps the first ones.
"""
_SUBJECTLESS = ", and none\nof the distractor's photo the target's subject"
_RELIABLE = """these tell how reliably each object is named. No
target has an object that captions often leave out, and """
_RULES = """
Two sets of rules exist, and `rules: {rules}` made these. `published` is what the authors' released code does. `strict`
is what their paper says, without what gets past that code. Words are compared as lemmas. All must be rated, and no
rating is replaced by another word's. The paper's four words are averaged (section 6.2) rather than six. Relations that
the parser is likely to have misread, or that say nothing of what a photo shows, are left out, step by step as in the
table below. No caption of the reference's photo names the target's object or implies it{distractor}.
Where a thousand images have three captions or more, {reliable}two captions of a target's
image say each of its words, or another name of it. With one caption an image none of this is checked, and more
references show their condition unsaid.
"""

#: What the strict rules keep out, by its name in the record of mining.
_FAULTS = {
    "same_object": "reference and target have one object",
    "same_image": "reference and target are one image",
    "reference_shows_target": "captions of the reference's image already say the target's subject with its object",
    # Those of a distractor's image only where distractors are stored.
    "distractor_of_reference_image": "the distractor is the reference's image",
    "distractor_of_target_image": "the distractor is the target's image",
    "distractor_shows_target": "captions of the distractor's image say the target's subject with its object",
    "unrated": "a word has no rating, and counts as −1",
    "by_overwriting": "kept for ratings that the plural of another word replaced",
    "by_distractor": "kept for the words of the distractor that these rules sample: those of reference and target "
    "miss the threshold",
    "any": "any of these",
}


def _differences(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "\nOn these captions the published rules find no triplet at all.\n"
    rows = [(what, f"{found[name]:.2%}") for name, what in _FAULTS.items() if found.get(name) is not None]
    text = f"\nOf {found['triplets']:,} triplets that the published rules mine from the same captions:\n\n"
    text += table(("what the strict rules keep out", "share"), rows)
    if found.get("strict_dropped") is not None:
        text += f"\nThe other way round, {found['strict_dropped']:.2%} of strict triplets miss the threshold by the "
        text += "published ratings of their four words.\n"
    if found.get("overwritten"):
        words = ", ".join(
            f"{plain(short(one['word']))} ({one['rated']:g} → {one['published']:g})"
            for one in found["overwritten"][:OVERWRITTEN]
        )
        text += f"\nThe most frequent words that the published rules rate as another one: {words}.\n"
    return text


def _funnels(mining: Mapping[str, Any]) -> str:
    funnels: Mapping[str, Mapping[str, int]] = mining.get("funnels", {})
    # The strict rules have all steps of the published ones, and others between them: the longest gives the order.
    steps = list(dict.fromkeys(step for funnel in sorted(funnels.values(), key=len, reverse=True) for step in funnel))
    if not steps:
        return ""
    rows = [(step, *(f"{funnel[step]:,}" if step in funnel else "–" for funnel in funnels.values())) for step in steps]
    return "\nFrom captions to what can be drawn:\n\n" + table(("", *funnels), rows)


def _refused(mining: Mapping[str, Any]) -> str:
    rows = [(rule, f"{share:.1%}") for rule, share in mining.get("refused", {}).items()]
    if not rows:
        return ""
    return "\nOf pairs that are drawn from these relations, each rule refuses:\n\n" + table(("", "share"), rows)


def _frequent(mining: Mapping[str, Any]) -> str:
    lists = {name: list(mining.get(name, {}).items())[:FREQUENT] for name in ("subjects", "predicates", "objects")}
    if not any(lists.values()):
        return ""
    rows = [
        (name, ", ".join(f"{short(word)} ({count / max(mining['mined'], 1):.1%})" for word, count in words))
        for name, words in lists.items()
    ]
    text = f"\nThe most frequent words of targets (of the first {mining['mined']:,} triplets):\n\n"
    return text + table(("", "share of the triplets"), rows)
