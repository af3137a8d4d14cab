"""The engine ``kubric`` at work: captions read, scenes placed, rendered and proved."""

from collections.abc import Iterator, Sequence
from functools import cached_property

from twinset import Rejected, generator_for
from twinset.contracts.kinds.samples import Json
from twinset.generators.kubric_scenes.proof import Instance, foresee, measure
from twinset.generators.kubric_scenes.scene.composition import Refuted
from twinset.generators.kubric_scenes.scene.parts import Picture, View
from twinset.generators.kubric_scenes.studio.cycles import gpu_name
from twinset.generators.kubric_scenes.studio.studio import Studio
from twinset.models.image_engine import Drawn, ImageGenerator, Rejection, Request
from twinset_demo.kubric_grammar.grammar import NotDrawable, Scene, read
from twinset_demo.kubric_grammar.placement import STREAM, Placed, place
from twinset_demo.kubric_grammar.proof import coloured, prove_colours, prove_placed
from twinset_demo.kubric_grammar.settings import KubricImages
from twinset_demo.kubric_grammar.workshop import Workshop

FORESEEN = 128  # pixels: outlines are drawn this small to see beforehand what a render would be rejected for


class KubricPainter(ImageGenerator):
    """Renders of captions; one scene a seed and a try."""

    version = 2
    isolation = "process"
    libraries = ("bpy", "kubric-nightly", "numpy", "opencv-python", "pybullet", "trimesh")

    def __init__(self, settings: KubricImages) -> None:
        self.settings = settings
        self.threads = settings.threads

    def device(self) -> str:
        """As `Component.device`: the denoiser is a neural network, and Cycles rounds."""
        return "cpu" if self.settings.device == "cpu" else gpu_name()

    def refuses(self, caption: str) -> Rejection | None:
        """As `ImageGenerator.refuses`: what the grammar cannot read, and what its objects cannot show."""
        try:
            read(caption)
        except NotDrawable as error:
            return error.rejection
        return None

    def draw(self, requests: Sequence[Request]) -> Iterator[Drawn | Rejected]:
        """As `ImageGenerator.draw`. Reasons are the settings' `reasons`; of several tries, that of the last one."""
        for request in requests:
            try:
                scene = read(request.caption)
            except NotDrawable as error:
                yield Rejected(request.key, error.rejection.reason, error.rejection.detail)
                continue
            for attempt in range(self.settings.attempts):
                try:
                    made = self._try(request, scene, attempt)
                except Refuted as error:
                    refuted = error
                else:
                    yield made
                    break
            else:
                tries = f"(the last of {self.settings.attempts} tries)"
                yield Rejected(request.key, refuted.reason, f"{refuted} {tries}")

    def _try(self, request: Request, scene: Scene, attempt: int) -> Drawn:
        """One scene; raises `Refuted`, where outlines show it before anything is rendered."""
        placed = place(scene, self._workshop, request.seed, attempt)
        expected = foresee(placed.things, placed.view, FORESEEN)
        seen = measure(placed.things, placed.view, expected)
        prove_placed(scene, placed.owners, seen, expected.instances.size)
        noise = int(generator_for(request.seed, STREAM, "noise").integers(1 << 31))
        picture = self._studio.render(placed.view, [one.placement for one in placed.things], noise)
        seen = measure(placed.things, placed.view, picture)
        prove_placed(scene, placed.owners, seen, picture.instances.size)
        prove_colours(scene, placed.owners, picture)
        record = _provenance(scene, placed, seen, picture, attempt, noise)
        return Drawn(request.key, picture.pixels, record, picture.instances)

    @cached_property
    def _workshop(self) -> Workshop:
        return Workshop()

    @cached_property
    def _studio(self) -> Studio:
        one = self.settings
        size = (one.resolution, one.resolution)
        return Studio(self._workshop.shelf, size, one.samples, one.denoise, one.device, one.threads)


def _provenance(
    scene: Scene, placed: Placed, seen: Sequence[Instance], picture: Picture, attempt: int, noise: int
) -> dict[str, Json]:
    """What was read, where it stands, and what proves it."""
    view: View = placed.view
    instances: list[Json] = []
    for number, (one, owner) in enumerate(zip(seen, placed.owners, strict=True), start=1):
        colour = scene.phrases[owner].colour
        share = round(coloured(picture, number, colour), 4)
        instances.append({**one.record(), "phrase": owner, "colour": colour, "coloured": share})
    return {
        "relations": list(scene.relations),
        "attempt": attempt,
        "noise": noise,
        "camera": {"position": view.camera, "target": view.target, "focal_length": view.focal_length},
        "instances": instances,
    }
