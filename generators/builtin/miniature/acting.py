"""A play in beats: who does what with which thing, the picture of any moment of it, and what is true in it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from generators.builtin.miniature.canvas import Canvas, Point
from generators.builtin.miniature.figure import FLOOR, STANDING, TORSO, Figure, Looks, Pose, between
from generators.builtin.miniature.things import THINGS
from shards.kinds.samples import Pixels

TRANSFER, SETTLED = 0.2, 0.42  # shares of a beat after which things have changed hands, and the pose is reached
STEP = 46.0  # pixels walked in a full cycle of both legs
BENEATH = {"sitting_on", "lying_on", "standing_on"}


@dataclass(frozen=True, slots=True)
class Prop:
    """A thing of the play: its kind, where its base is at the start, and how it stands."""

    kind: str
    where: Point
    flip: bool = False


@dataclass(frozen=True, slots=True)
class Beat:
    """One act: the pose it leads to and what holds from then on.

    held: prop → hand (``near``, ``far``, ``both``). puts: props let go in this beat, and where their base then is.
    via: the pose in which things change hands, where the one before is not near enough. tilt: of held props, radians.
    busy: how far the near hand moves to and fro, in pixels (wiping, sweeping). looks: prop that is looked at.
    contacts: prop → contacting relations of Action Genome. status: the act in words; also: the same in other words.
    """

    seconds: float
    pose: Pose
    held: Mapping[str, str] = field(default_factory=dict)
    puts: Mapping[str, Point] = field(default_factory=dict)
    via: Pose | None = None
    tilt: Mapping[str, float] = field(default_factory=dict)
    busy: Point = (0.0, 0.0)
    looks: str | None = None
    contacts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    status: str = ""
    also: str = ""


@dataclass(frozen=True)
class Play:
    """A whole play in one room."""

    room: Canvas
    looks: Looks
    props: Mapping[str, Prop]
    beats: Sequence[Beat]

    @cached_property
    def starts(self) -> list[float]:
        """When each beat begins, in seconds, and when the last one ends."""
        times = [0.0]
        for beat in self.beats:
            times.append(round(times[-1] + beat.seconds, 6))
        return times

    def frames(self, times: Sequence[float]) -> Iterator[tuple[float, Pixels]]:
        """The picture at each of the times."""
        for seconds in times:
            yield seconds, self.picture(seconds)

    def picture(self, seconds: float) -> Pixels:
        """(240, 320, 3) RGB picture of one moment."""
        beat, share, pose = self._moment(seconds)
        canvas, figure = self.room.copy(), Figure(self.looks)
        carried = [name for name in self.props if self._held_by(beat, share, name)]
        for name, prop in self.props.items():
            if name not in carried:
                self._draw(canvas, beat, share, pose, name, prop)
        canvas_shadow(canvas, pose)
        if pose.facing:
            figure.body(canvas, pose)
            for name in carried:
                self._draw(canvas, beat, share, pose, name, self.props[name])
            figure.arms(canvas, pose)
        else:
            figure.body(canvas, pose)
            figure.arms(canvas, pose)
            for name in carried:
                self._draw(canvas, beat, share, pose, name, self.props[name])
        return canvas.pixels()

    def beat_at(self, seconds: float) -> int:
        """Number of the beat that is played at a time."""
        return max(n for n, start in enumerate(self.starts[:-1]) if start <= seconds + 1e-9)

    def where(self, beat: int, share: float, pose: Pose, name: str) -> Point:
        """Where a prop is held (or, lying about, would be held), in the picture."""
        prop = self.props[name]
        lift = THINGS[prop.kind].grip
        hand = self._held_by(beat, share, name)
        if hand:
            return pose.hand(hand)
        base = prop.where
        for number, played in enumerate(self.beats[: beat + 1]):
            if name in played.puts and (number < beat or share >= TRANSFER):
                base = played.puts[name]
        return base[0], base[1] - lift

    def relations(self, seconds: float, name: str) -> dict[str, list[str]]:
        """Attention, spatial and contacting relations of the actor to a prop, in Action Genome's words."""
        number, share, pose = self._moment(seconds)
        beat = self.beats[number]
        contacts = beat.contacts.get(name, ("not_contacting",))
        return {
            "attention_relationship": ["looking_at" if beat.looks == name else "not_looking_at"],
            "spatial_relationship": self._spatial(number, share, pose, name, contacts),
            "contacting_relationship": list(contacts),
        }

    def bbox(self, seconds: float, name: str) -> tuple[float, float, float, float]:
        """Left, top, width and height of a prop, in pixels."""
        thing = THINGS[self.props[name].kind]
        x, y = self.where(*self._moment(seconds), name)
        return round(x - thing.width / 2, 1), round(y + thing.grip - thing.height, 1), thing.width, thing.height

    def _spatial(self, number: int, share: float, pose: Pose, name: str, contacts: tuple[str, ...]) -> list[str]:
        x, y = self.where(number, share, pose, name)
        if BENEATH & set(contacts):
            return ["beneath", "behind"] if "leaning_on" in contacts else ["beneath"]
        if y < FLOOR - pose.hips - TORSO - 24:
            return ["above"]
        if pose.facing == 0:
            return ["in_front_of"] if name in self.beats[number].held else ["on_the_side_of"]
        return ["in_front_of"] if (x - pose.x) * pose.facing >= 0 else ["behind"]

    def _moment(self, seconds: float) -> tuple[int, float, Pose]:
        number = self.beat_at(seconds)
        beat = self.beats[number]
        share = (seconds - self.starts[number]) / beat.seconds
        last = self.beats[max(0, number - 1)]
        return number, share, self._pose(last, beat, number, share)

    def _pose(self, last: Beat, beat: Beat, number: int, share: float) -> Pose:
        walks = abs(beat.pose.x - last.pose.x) > 12 and last.pose.hips == beat.pose.hips == STANDING
        taken = [name for name in beat.held if name not in last.held] if number else []
        start = 0.0
        before = last.pose
        if taken or beat.puts:
            start, target = TRANSFER, self._transfer(last, beat, number, taken)
            if share < TRANSFER:
                return between(before, target, _smooth(share / TRANSFER))
            before = target
        end = 0.92 if walks else SETTLED
        done = min(1.0, (share - start) / (end - start))
        pose = between(before, beat.pose, done if walks else _smooth(done))
        if walks:
            pose = self._step(replace(pose, facing=beat.pose.facing), beat, abs(pose.x - before.x), done)
        if beat.busy != (0.0, 0.0) and share > SETTLED / 2:
            swing = math.sin(share * beat.seconds * 2 * math.pi * 1.1)
            near = (pose.near[0] + beat.busy[0] * swing, pose.near[1] + beat.busy[1] * swing)
            pose = replace(pose, near=near)
        return pose

    def _transfer(self, last: Beat, beat: Beat, number: int, taken: list[str]) -> Pose:
        if beat.via:
            return beat.via
        hands: dict[str, Point] = {}
        for name in (*taken, *beat.puts):
            if name in taken:
                point = self.where(number - 1, 1.0, last.pose, name)
            else:
                x, y = beat.puts[name]
                point = x, y - THINGS[self.props[name].kind].grip
            hand = (beat.held if name in taken else last.held)[name]
            hands |= {"near": point, "far": point} if hand == "both" else {hand: point}
        return last.pose.reaching(**hands)

    def _step(self, pose: Pose, beat: Beat, travelled: float, done: float) -> Pose:
        phase, strength = travelled / STEP * 2 * math.pi, min(1.0, 6 * (1 - done))
        forward, lift = 15 * math.sin(phase) * strength, 7 * math.cos(phase) * strength
        near, far = (forward, max(0.0, lift)), (-forward, max(0.0, -lift))
        pose = replace(pose, near_foot=near, far_foot=far, hips=STANDING - 1.5)
        if not beat.held:
            pose = replace(pose, near=(-forward, -40.0), far=(forward, -40.0))
        return pose

    def _held_by(self, number: int, share: float, name: str) -> str | None:
        before = self.beats[number - 1].held.get(name) if number else self.beats[0].held.get(name)
        return before if share < TRANSFER else self.beats[number].held.get(name)

    def _draw(self, canvas: Canvas, number: int, share: float, pose: Pose, name: str, prop: Prop) -> None:
        held = self._held_by(number, share, name) is not None
        flip = pose.facing < 0 if held else prop.flip
        before, after = self.beats[max(0, number - 1)].tilt.get(name, 0.0), self.beats[number].tilt.get(name, 0.0)
        tilt = before + (after - before) * _smooth(min(1.0, share / SETTLED)) if held else 0.0
        used = held or bool(self.beats[number].contacts.get(name))
        where = self.where(number, share, pose, name)
        THINGS[prop.kind].draw(canvas.at(where, -tilt if flip else tilt, flip), used)


def canvas_shadow(canvas: Canvas, pose: Pose) -> None:
    """A soft spot on the floor that ties the actor to it."""
    canvas.ellipse((pose.x, FLOOR + 2), 26, 4, (112, 84, 62))


def boundaries(play: Play) -> list[tuple[float, float, float]]:
    """(timestamp, previous, next) in seconds of every boundary between two beats, as GEBC counts them."""
    inner = play.starts[1:-1]
    edges = [0.0, *inner, play.starts[-1]]
    return [(now, before, edges[n + 2]) for n, (before, now) in enumerate(pairwise(edges[:-1]))]


def _smooth(share: float) -> float:
    return share * share * (3 - 2 * share)
