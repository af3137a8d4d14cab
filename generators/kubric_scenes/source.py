"""EQ-Kubric: rendered pairs that differ in location, count or attribute (EqBen, section B.4 and Figure 14)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, cast

from pydantic import Field, TypeAdapter, model_validator

from twinset.contracts.candidate import Candidate, CaptionedCandidate
from twinset.contracts.canonical import canonical_json, digest, generator_for, sha256_of_file
from twinset.contracts.errors import WrongUse, naming
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, Json, Rejected
from twinset.contracts.locations import on_this_machine
from twinset.contracts.references import Reference, bibtex
from twinset.contracts.source import Need, Place
from twinset.generators.papers import EQBEN
from twinset.generators.reasons import reasons_beside
from twinset.models.device import check_installed, check_opencv
from twinset.shards.contracts import Source
from twinset.shards.media.media_folder import Media, MediaFolder

if TYPE_CHECKING:
    from twinset.generators.kubric_scenes.assets import AssetShelf
    from twinset.generators.kubric_scenes.captions import Drawn
    from twinset.generators.kubric_scenes.geometry import View
    from twinset.generators.kubric_scenes.proof import Instance
    from twinset.generators.kubric_scenes.studio import Studio

FORESEEN = 160  # pixels: outlines are drawn this small to see beforehand what a render would be rejected for


@dataclass(frozen=True, slots=True, kw_only=True)
class KubricCandidate(CaptionedCandidate):
    """A drawn pair. drawn: `captions.Drawn` as canonical JSON."""

    drawn: str


class Kubric(Source):
    """Rendered scenes of objects that a vocabulary names.

    aspect: what the two captions differ in.
    assets: the manifest (file or URL) of a Kubric asset source in the layout of Google Scanned Objects; decides which
    objects of the vocabulary can be planned.
    resolution: width and height in pixels. samples: the most rays a pixel, fewer where the picture is clean.
    threads: of each renderer, 0 for all cores; as many shards as there are cores are made at a time unless --workers
    says otherwise.
    sizes: of the two objects of an attribute pair, ``shared``: one size for both; ``each``: drawn separately, as in the
    paper's Figures 8 and 16.
    attempts: sub-seeds tried before a pair is rejected.
    licence: of the assets, copied into every sample and the card: CC-BY-4.0 for Google Scanned Objects.
    """

    kind: Literal["kubric"]
    aspect: Literal["location", "counting", "attribute"]
    assets: Annotated[str, Place("file", "media")]
    resolution: int = Field(default=512, ge=64, le=4096)
    samples: int = Field(default=128, ge=1, le=4096)
    threads: int = Field(default=1, ge=0)
    sizes: Literal["shared", "each"] = "shared"
    attempts: int = Field(default=8, ge=1, le=100)
    licence: str

    version = 7
    isolation = "process"
    candidate = KubricCandidate
    libraries = ("bpy", "kubric-nightly", "numpy", "opencv-python", "pybullet", "trimesh")
    reference = Reference("Kubric", "https://github.com/google-research/kubric", bibtex("greff2022kubric"))
    paper = EQBEN
    group = "scene"
    verb = "rendered with"
    unbounded = True
    synthetic = True
    execution = ("threads",)
    card_template = Path(__file__).with_name("card.md.j2")
    reasons: ClassVar[Mapping[str, str]] = reasons_beside(__file__, "kubric")

    @model_validator(mode="after")
    def _settings_fit(self) -> Kubric:
        if self.sizes == "each" and self.aspect != "attribute":
            raise ValueError("sizes: only captions of the aspect attribute say sizes; leave it out")
        return self

    @property
    def manifest(self) -> str:
        """Path or URL of the manifest of assets."""
        return on_this_machine(self.assets)

    def media_files(self) -> Media | None:
        """The asset archives, when the manifest is a file of this machine."""
        return None if "://" in self.manifest else MediaFolder(Path(self.manifest).parent)

    def check_inputs(self, key: str, needs: Collection[Need]) -> None:
        with naming(f"{key}.assets"):
            manifest = self.manifest
        if "://" not in manifest and not Path(manifest).is_file():
            raise WrongUse(f"{key}.assets: there is no file {manifest}; name a manifest with --set {key}.assets=FILE")

    def check_device(self, key: str) -> None:
        check_installed(key, ("bpy", "kubric", "pybullet"), "render")
        check_opencv(key)

    def runs_on(self) -> str:
        """The denoiser is a neural network on the CPU, and Cycles rounds."""
        return "cpu"

    def inputs(self) -> str:
        from twinset.generators.kubric_scenes.captions import SHIPPED

        return digest([sha256_of_file(SHIPPED)[0], self.shelf.listing.sha256])

    def plan(self) -> Iterator[Candidate]:
        """Pairs without end, each a scene of its own; how many are taken does not change the first ones."""
        from twinset.generators.kubric_scenes.captions import PairSampler

        pairs = PairSampler(self.aspect, self.shelf.entries, self.stage.seed, self.stage.name, self.sizes)
        self._excluded = pairs.excluded
        for index, (drawn, caption0, caption1) in enumerate(pairs):
            yield KubricCandidate(
                **self.identified(index, group=f"scene-{index:06d}"),
                captions0=(caption0,),
                captions1=(caption1,),
                drawn=canonical_json(asdict(drawn)).decode(),
            )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Rendered pairs, or why a scene could not be proved: the reason of its last try.

        Rejections: ``missing-media`` and ``broken-media`` for an asset's archive, ``never-still``, and
        those of `generators.kubric_scenes.proof`.
        """
        from twinset.generators.kubric_scenes.assets import UnusableAsset

        for candidate in cast(Sequence[KubricCandidate], candidates):
            try:
                yield self._make(candidate)
            except UnusableAsset as error:
                reason = "missing-media" if error.size is None else "broken-media"
                # Only what lies in a folder can be looked for again.
                media = error.recorded if "://" not in error.recorded else None
                yield Rejected(candidate.key, reason, str(error), media, error.size)

    def _make(self, candidate: KubricCandidate) -> Pair | Rejected:
        from twinset.generators.kubric_scenes.captions import Drawn
        from twinset.generators.kubric_scenes.geometry import Refuted

        drawn = TypeAdapter(Drawn).validate_json(candidate.drawn)
        for attempt in range(self.attempts):
            try:
                return self._shoot(candidate, drawn, attempt)
            except Refuted as error:
                refuted = error
        return Rejected(candidate.key, refuted.reason, f"{refuted} (the last of {self.attempts} tries)")

    def _shoot(self, candidate: KubricCandidate, drawn: Drawn, attempt: int) -> Pair:
        """Both images; raises `Refuted`, where outlines show it before anything is rendered."""
        from twinset.generators.kubric_scenes import proof
        from twinset.generators.kubric_scenes.composition import compose

        rng = generator_for(self.stage.seed, self.stage.name, f"{candidate.key}/{attempt}")
        noise = int(rng.integers(1 << 31))
        view, *scenes = compose(drawn, self.shelf, rng, attempt)
        proof.prove_spot(drawn, scenes[0][0], scenes[1][0])
        for number, scene in enumerate(scenes):
            expected = proof.foresee(scene, view, FORESEEN)
            proof.prove_image(drawn, number, proof.measure(scene, view, expected), expected)
        pictures, instances = [], []
        for number, scene in enumerate(scenes):
            picture = self._studio.render(view, [standing.placement for standing in scene], noise)
            seen = proof.measure(scene, view, picture)
            proof.prove_image(drawn, number, seen, picture)
            proof.prove_contrast(seen, picture)
            pictures.append(picture)
            instances.append(seen)
        first, second = pictures
        proof.prove_change(drawn, view, (scenes[0], scenes[1]), (first, second))
        assets = dict.fromkeys(standing.named.asset for scene in scenes for standing in scene)
        return Pair(
            **candidate.placed,
            change=drawn.aspect,
            image0=Frame(f"{candidate.key}#0", first.pixels, -1.0, self.shelf.listing),
            image1=Frame(f"{candidate.key}#1", second.pixels, -1.0, self.shelf.listing),
            provenance={**_provenance(drawn, view, instances), "attempt": attempt, "noise": noise},
            sources=tuple(self.shelf.source(asset) for asset in assets),
        )

    @cached_property
    def shelf(self) -> AssetShelf:
        """The assets, unpacked as they are asked for."""
        from twinset.generators.kubric_scenes.assets import AssetShelf

        return AssetShelf(self.manifest)

    @cached_property
    def _studio(self) -> Studio:
        from twinset.generators.kubric_scenes.studio import Studio

        return Studio(self.shelf, (self.resolution, self.resolution), self.samples, self.threads)


def _provenance(drawn: Drawn, view: View, seen: Sequence[Sequence[Instance]]) -> dict[str, Json]:
    """What a pair's JSON says of its scene."""
    from twinset.generators.kubric_scenes.geometry import FOCAL_LENGTH

    return {
        "object0": drawn.object0.name,
        "object1": drawn.object1.name,
        "subject": drawn.subject.name if drawn.subject is not None else "",
        "relation0": drawn.relation0,
        "relation1": drawn.relation1,
        "count0": drawn.count0,
        "count1": drawn.count1,
        "camera": {"position": view.camera, "target": view.target, "focal_length": FOCAL_LENGTH},
        # One list, which is never empty: Hugging Face's loader takes a type from the first samples.
        "instances0": [asdict(instance) for instance in seen[0]],
        "instances1": [asdict(instance) for instance in seen[1]],
    }
