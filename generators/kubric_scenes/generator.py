"""EQ-Kubric: rendered pairs that differ in location, count or attribute (EqBen, section B.4 and Figure 14)."""

import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import cast

from pydantic import TypeAdapter

from twinset.contracts.candidate import Candidate, CaptionedCandidate
from twinset.contracts.canonical import canonical_json, digest, generator_for, sha256_of_file
from twinset.contracts.errors import WrongUse
from twinset.contracts.kinds.pair import Pair
from twinset.contracts.kinds.samples import Frame, Json, Rejected
from twinset.generators.kubric_scenes.assets.shelf import AssetShelf, UnusableAsset
from twinset.generators.kubric_scenes.captions.pair_sampling import draw_pairs, usable
from twinset.generators.kubric_scenes.captions.vocabulary import SHIPPED, load_vocabulary
from twinset.generators.kubric_scenes.difference_proofs import prove_change, prove_contrast, prove_spot, turn_sun
from twinset.generators.kubric_scenes.proof import Instance, foresee, measure, of_image, prove_image, prove_seen
from twinset.generators.kubric_scenes.scene.bystanders import add_bystanders
from twinset.generators.kubric_scenes.scene.composition import Refuted, compose
from twinset.generators.kubric_scenes.scene.look import Look
from twinset.generators.kubric_scenes.scene.parts import Drawn, Picture, View
from twinset.generators.kubric_scenes.scene.surroundings import record as surroundings
from twinset.generators.kubric_scenes.scene.surroundings import turned_with_sun
from twinset.generators.kubric_scenes.source import Kubric
from twinset.generators.kubric_scenes.studio.cycles import gpu_name
from twinset.generators.kubric_scenes.studio.studio import Studio
from twinset.shards.contracts import Generator

BACKGROUNDS = (".hdr", ".exr")
BYSTANDER_VISIBLE = 0.4  # of its painted outline, which is fatter than what is thin; boxes prove that nothing hides it
BYSTANDER_SHARE = 0.002  # of the picture: less than `MIN_SHARE`, as no caption names it
FORESEEN = 160  # pixels: outlines are drawn this small to see beforehand what a render would be rejected for
DRAWN = TypeAdapter(Drawn)  # reads `KubricCandidate.drawn`


@dataclass(frozen=True, slots=True, kw_only=True)
class KubricCandidate(CaptionedCandidate):
    """A drawn pair. drawn: `generators.kubric_scenes.scene.parts.Drawn` as canonical JSON."""

    drawn: str


class KubricGenerator(Generator[Kubric]):
    """Pairs of scenes, drawn from the vocabulary, rendered and proved."""

    version = 4
    isolation = "process"
    candidate = KubricCandidate
    libraries = ("bpy", "kubric-nightly", "numpy", "opencv-python", "pybullet", "trimesh")

    def inputs(self) -> str:
        names = [path.name for path in self._backgrounds]
        return digest([sha256_of_file(SHIPPED)[0], self.shelf.listing.sha256, names])

    def device(self) -> str:
        """What renders, as the runtime class names it: the denoiser is a neural network, and Cycles rounds."""
        return "cpu" if self.source.device == "cpu" else gpu_name()

    def plan(self) -> Iterator[KubricCandidate]:
        """Pairs without end, each a scene of its own; how many are taken does not change the first ones."""
        vocabulary, available = load_vocabulary(), self.shelf.entries
        source = self.source
        self.excluded = usable(vocabulary, source.aspect, available).excluded
        for planned in draw_pairs(source.aspect, vocabulary, available, self.seed, self.name, source.sizes):
            yield KubricCandidate(
                **self.identified(planned.index, group=f"scene-{planned.index:06d}"),
                captions0=planned.captions0,
                captions1=planned.captions1,
                drawn=canonical_json(asdict(planned.drawn)).decode(),
            )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Rendered pairs, or why a scene could not be proved: the reason of its last try.

        Rejections: ``missing-media`` and ``broken-media`` for an asset's archive, ``no-room``, ``never-still``, and
        those of `generators.kubric_scenes.proof`, `contrast_proof` and `change_proof`.
        """
        for candidate in cast(Sequence[KubricCandidate], candidates):
            try:
                yield self._make(candidate)
            except UnusableAsset as error:
                reason = "missing-media" if error.size is None else "broken-media"
                # Only what lies in a folder can be looked for again.
                media = error.recorded if "://" not in error.recorded else None
                yield Rejected(candidate.key, reason, str(error), media, error.size)

    def _make(self, candidate: KubricCandidate) -> Pair | Rejected:
        drawn = DRAWN.validate_json(candidate.drawn)
        look = self.source.look.of_one_pair(generator_for(self.seed, self.name, f"{candidate.key}/look"))
        for attempt in range(self.source.attempts):
            try:
                return self._shoot(candidate, drawn, look, attempt)
            except Refuted as error:
                refuted = error
        return Rejected(candidate.key, refuted.reason, f"{refuted} (the last of {self.source.attempts} tries)")

    def _shoot(self, candidate: KubricCandidate, drawn: Drawn, look: Look, attempt: int) -> Pair:
        """Both images; raises `Refuted`, where outlines show it before anything is rendered."""
        rng = generator_for(self.seed, self.name, f"{candidate.key}/{attempt}")
        noise = int(rng.integers(1 << 31))
        scene = compose(drawn, self.shelf, self.source.size_ratio, rng, self._backgrounds, attempt, look)
        named = (scene.things0, scene.things1)
        prove_spot(drawn, scene.things0[0], scene.things1[0])
        bystanders = add_bystanders(drawn, named, scene.view, look, self.shelf, rng)
        both = (scene.things0 + bystanders, scene.things1 + bystanders)
        for number, things in enumerate(both):
            expected = foresee(things, scene.view, FORESEEN)
            self._prove(drawn, number, measure(things, scene.view, expected), expected, len(bystanders))
        view = turned_with_sun(scene.view, turn_sun(scene.view, *both))
        pictures, instances = [], []
        for number, things in enumerate(both):
            picture = self._studio.render(view, [thing.placement for thing in things], noise)
            seen = measure(things, view, picture)
            self._prove(drawn, number, seen, picture, len(bystanders))
            with of_image(number):
                prove_contrast(seen[: len(named[number])], picture)
            pictures.append(picture)
            instances.append(seen)
        first, second = pictures
        prove_change(drawn, view, both, (first, second))
        assets = dict.fromkeys(standing.thing.asset for things in both for standing in things)
        return Pair(
            **candidate.placed,
            change=drawn.aspect,
            image0=Frame(f"{candidate.key}#0", first.pixels, -1.0, self.shelf.listing),
            image1=Frame(f"{candidate.key}#1", second.pixels, -1.0, self.shelf.listing),
            provenance=_provenance(drawn, view, instances, len(bystanders), attempt, noise),
            sources=tuple(self.shelf.source(asset) for asset in assets),
            masks=(first.instances, second.instances) if self.source.masks else None,
        )

    @staticmethod
    def _prove(drawn: Drawn, number: int, seen: list[Instance], picture: Picture, bystanders: int) -> None:
        """Raise `Refuted` unless an image shows what is said of it, and its last instances, the bystanders, whole."""
        named = len(seen) - bystanders
        for place, one in enumerate(seen[named:], start=named):
            prove_seen(one, BYSTANDER_VISIBLE, picture.instances.size, BYSTANDER_SHARE)
            if any(_meet(one, other) for other in (*seen[:place], *seen[place + 1 :])):
                raise Refuted("hidden", f"something stands before {one.name} or behind it")
        with of_image(number):
            prove_image(drawn, number, seen[:named], picture)

    @cached_property
    def _backgrounds(self) -> list[Path]:
        folder = self.source.backgrounds
        if folder is None:
            return []
        found = sorted(path for path in folder.iterdir() if path.suffix.lower() in BACKGROUNDS)
        if not found:
            raise WrongUse(f"{folder}: holds no {' or '.join(BACKGROUNDS)} file; correct source.backgrounds")
        return found

    @cached_property
    def shelf(self) -> AssetShelf:
        """The assets, unpacked as they are asked for."""
        return AssetShelf(self.source.manifest, Path(tempfile.gettempdir()))

    @cached_property
    def _studio(self) -> Studio:
        size = (self.source.resolution, self.source.resolution)
        source = self.source
        return Studio(self.shelf, size, source.samples, source.denoise, source.device, source.threads)


def _meet(one: Instance, other: Instance) -> bool:
    """Whether the boxes of two masks overlap."""
    return all(one.box[axis] < other.box[axis + 2] and other.box[axis] < one.box[axis + 2] for axis in (0, 1))


def _provenance(
    drawn: Drawn, view: View, seen: list[list[Instance]], bystanders: int, attempt: int, noise: int
) -> dict[str, Json]:
    """bystanders: how many of the instances, the last ones, no caption names."""
    background: dict[str, Json] = {"file": "", "sha256": "", "yaw": 0.0}
    if view.background is not None:
        sha256, _ = sha256_of_file(view.background)
        background = {"file": view.background.name, "sha256": sha256, "yaw": view.background_yaw}
    return {
        "object0": drawn.object0.name,
        "object1": drawn.object1.name,
        "subject": drawn.subject.name if drawn.subject is not None else "",
        "relation0": drawn.relation0,
        "relation1": drawn.relation1,
        "count0": drawn.count0,
        "count1": drawn.count1,
        "attempt": attempt,
        "noise": noise,
        "camera": {"position": view.camera, "target": view.target, "focal_length": view.focal_length},
        "background": background,
        # One list, which is never empty: Hugging Face's loader takes a type from the first samples.
        "instances0": [one.record() for one in seen[0]],
        "instances1": [one.record() for one in seen[1]],
        "bystanders": bystanders,
        "surroundings": surroundings(view),
    }
