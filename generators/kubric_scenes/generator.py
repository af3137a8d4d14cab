"""EQ-Kubric: rendered pairs that differ in location, count or attribute (EqBen, section B.4 and Figure 14)."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from generators.kubric_scenes.assets.manifest import AssetManifest, UnusableAsset, read_manifest
from generators.kubric_scenes.captions.pair_sampling import draw_pairs, usable
from generators.kubric_scenes.captions.vocabulary import SHIPPED, load_vocabulary
from generators.kubric_scenes.proof.evidence import Instance, foresee, measure
from generators.kubric_scenes.proof.proof import Refuted, prove_change, prove_image
from generators.kubric_scenes.scene.composition import Composition, NoRoom, Standing, compose
from generators.kubric_scenes.scene.parts import Drawn, Placement, Settled, Thing
from generators.kubric_scenes.source import Kubric
from manifests.candidate import Candidate, CaptionedCandidate
from manifests.canonical import canonical_json, digest, generator_for, identity_of, sample_key, sha256_of_file
from manifests.errors import WrongUse
from shards.contracts import Generator
from shards.kinds.pair import Pair
from shards.kinds.samples import Frame, Json, Rejected, Source

BACKGROUNDS = (".hdr", ".exr")
FORESEEN = 160  # pixels: outlines are drawn this small to see beforehand what a render would be rejected for


@dataclass(frozen=True, slots=True, kw_only=True)
class KubricCandidate(CaptionedCandidate):
    """A drawn pair. drawn: `generators.kubric_scenes.scene.parts.Drawn` as canonical JSON."""

    drawn: str


class KubricGenerator(Generator[Kubric]):
    """Pairs of scenes, drawn from the vocabulary, rendered and proved."""

    version = 1
    isolation = "process"
    candidate = KubricCandidate
    libraries = ("bpy", "kubric-nightly", "numpy", "opencv-python", "pybullet", "trimesh")

    def inputs(self) -> str:
        """Digest of the vocabulary, the manifest of assets and the names of the backgrounds."""
        names = [path.name for path in self._backgrounds]
        return digest([sha256_of_file(SHIPPED)[0], self._manifest.source.sha256, names])

    def device(self) -> str:
        """What renders, as the runtime class names it: the denoiser is a neural network, and Cycles rounds."""
        if self.source.device == "cpu":
            return "cpu"
        from generators.kubric_scenes.studio.cycles import gpu_name

        return gpu_name()

    def plan(self) -> Iterator[KubricCandidate]:
        """Pairs without end, each a scene of its own; how many are taken does not change the first ones."""
        vocabulary, available = load_vocabulary(), self._manifest.entries
        self.excluded = usable(vocabulary, self.source.aspect, available).excluded
        for planned in draw_pairs(self.source.aspect, vocabulary, available, self.seed, self.name):
            yield KubricCandidate(
                key=sample_key(self.name, planned.index),
                identity=identity_of(planned.index),
                group=f"scene-{planned.index:06d}",
                split=self.split,
                captions0=planned.captions0,
                captions1=planned.captions1,
                drawn=canonical_json(asdict(planned.drawn)).decode(),
            )

    def make(self, candidates: Sequence[Candidate]) -> Iterator[Pair | Rejected]:
        """Rendered pairs, or why a scene could not be proved: the reason of its last try.

        Rejections: ``missing-media`` and ``broken-media`` for an asset's archive, ``no-room``, ``never-still``, and
        those of `generators.kubric_scenes.proof`.
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
        drawn = read_drawn(candidate.drawn)
        reason = detail = ""
        for attempt in range(self.source.attempts):
            rng = generator_for(self.seed, self.name, f"{candidate.key}/{attempt}")
            noise = int(rng.integers(1 << 31))
            try:
                scene = compose(drawn, self._set.models, rng, self._set.settle, self._backgrounds, attempt)
            except NoRoom as none:
                reason, detail = none.reason, str(none)
                continue
            made = self._shoot(candidate, drawn, scene, noise, attempt)
            if isinstance(made, Pair):
                return made
            reason, detail = made.reason, made.detail
        return Rejected(candidate.key, reason, f"{detail} (the last of {self.source.attempts} tries)")

    def _shoot(
        self, candidate: KubricCandidate, drawn: Drawn, scene: Composition, noise: int, attempt: int
    ) -> Pair | Refuted:
        """Both images, if they show what they should; nothing is rendered whose outlines already refute it."""
        both = (scene.things0, scene.things1)
        for number, things in enumerate(both):
            expected = foresee(things, scene.view, FORESEEN)
            if refuted := prove_image(drawn, number, measure(things, scene.view, expected), expected):
                return refuted
        pictures, instances = [], []
        for number, things in enumerate(both):
            picture = self._set.studio.render(scene.view, [thing.placement for thing in things], noise)
            seen = measure(things, scene.view, picture)
            if refuted := prove_image(drawn, number, seen, picture):
                return refuted
            pictures.append(picture)
            instances.append(seen)
        first, second = pictures
        if drawn.aspect == "attribute" and (refuted := prove_change(drawn, first, second)):
            return refuted
        return Pair(
            key=candidate.key,
            group=candidate.group,
            split=candidate.split,
            change=drawn.aspect,
            image0=Frame(f"{candidate.key}#0", first.pixels, -1.0, self._manifest.source),
            image1=Frame(f"{candidate.key}#1", second.pixels, -1.0, self._manifest.source),
            captions0=candidate.captions0,
            captions1=candidate.captions1,
            provenance=self._provenance(drawn, scene, instances, attempt, noise),
            sources=self._archives((*scene.things0, *scene.things1)),
            masks=(first.instances, second.instances) if self.source.masks else None,
        )

    def _provenance(
        self, drawn: Drawn, scene: Composition, instances: Sequence[Sequence[Instance]], attempt: int, noise: int
    ) -> dict[str, Json]:
        view = scene.view
        background: dict[str, Json] = {"file": "", "sha256": "", "yaw": 0.0}
        if view.background is not None:
            digested = sha256_of_file(view.background)[0]
            background = {"file": view.background.name, "sha256": digested, "yaw": view.background_yaw}
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
            "camera": {"position": list(view.camera), "target": list(view.target), "focal_length": view.focal_length},
            "background": background,
            "instances0": [one.record() for one in instances[0]],
            "instances1": [one.record() for one in instances[1]],
        }

    def _archives(self, things: Sequence[Standing]) -> tuple[Source, ...]:
        assets = dict.fromkeys(standing.thing.asset for standing in things)
        return tuple(self._set.shelf.source(asset) for asset in assets)

    @cached_property
    def _manifest(self) -> AssetManifest:
        return read_manifest(self.source.manifest)

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
    def _set(self) -> FilmSet:
        return FilmSet(self.source)


class FilmSet:
    """What scenes are made with: assets, physics and the renderer, loaded once a process."""

    def __init__(self, source: Kubric) -> None:
        # Blender is heavy: a plan does without it.
        from generators.kubric_scenes.assets.shelf import AssetShelf
        from generators.kubric_scenes.scene.models import Models
        from generators.kubric_scenes.studio.studio import Studio

        self._scratch = tempfile.TemporaryDirectory(prefix="twinset-kubric-")
        self.shelf = AssetShelf(source.manifest, Path(self._scratch.name))
        self.models = Models(self.shelf, load_vocabulary(), source.size_ratio)
        self.studio = Studio(
            self.shelf,
            (source.resolution, source.resolution),
            source.samples,
            source.denoise,
            source.device,
            source.threads,
        )

    def settle(self, fixed: Sequence[Placement], dropped: Placement) -> Settled:
        """`generators.kubric_scenes.scene.settle` with this set's assets."""
        from generators.kubric_scenes.scene.settle import settle

        return settle(self.shelf, fixed, dropped)


def read_drawn(text: str) -> Drawn:
    """What `KubricCandidate.drawn` says."""
    values: dict[str, Any] = json.loads(text)
    for role in ("object0", "object1", "subject"):
        values[role] = Thing(**values[role]) if values[role] is not None else None
    return Drawn(**values)
