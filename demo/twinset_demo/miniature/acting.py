"""A play in beats: who does what with which thing, the picture of any moment, and the relations that are true of it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

from twinset.contracts.kinds.samples import Pixels
from twinset_demo.canvas import Canvas, Point
from twinset_demo.miniature.actor import FLOOR, STANDING, TORSO, Actor, Pose, between
from twinset_demo.miniature.room import TABLE_TOP, THINGS, Room

BASE = 212.0  # picture row that furniture stands on
TOP = BASE - TABLE_TOP  # picture row of a table's top
TRANSFER, SETTLED = 0.2, 0.42  # shares of a beat after which things have changed hands, and the pose is reached
STEP = 46.0  # pixels walked in a full cycle of both legs
BENEATH = {"sitting_on", "lying_on", "standing_on"}

Hands = Mapping[str, str]  # thing → hand that holds it: ``near``, ``far`` or ``both``
Contacts = dict[str, tuple[str, ...]]  # thing → contacting relations of Action Genome


@dataclass(frozen=True, slots=True)
class Beat:
    """One act: the pose it leads to and what is true from then on.

    Args:
        held: What is held, and in which hand.
        puts: Things let go in this beat, and where their base then is.
        via: Pose in which things change hands, where the one before is not near enough.
        tilt: Of held things, radians.
        busy: How far the near hand moves to and fro, in pixels (wiping, sweeping).
        looks: Thing that is looked at.
        contacts: Contacting relations; what is held and not named here is only ``holding``.
        status: The act in words.
        also: The same in other words.
    """

    seconds: float
    pose: Pose
    held: Hands = field(default_factory=dict)
    puts: Mapping[str, Point] = field(default_factory=dict)
    via: Pose | None = None
    tilt: Mapping[str, float] = field(default_factory=dict)
    busy: Point = (0.0, 0.0)
    looks: str | None = None
    contacts: Contacts = field(default_factory=dict)
    status: str = ""
    also: str = ""

    def contact(self, thing: str) -> tuple[str, ...]:
        """Contacting relations of the actor to a thing; empty for none."""
        return self.contacts.get(thing, ("holding",) if thing in self.held else ())


class Moment(NamedTuple):
    """A moment of a play: number of the beat, share of it that is over, pose of the actor."""

    beat: int
    share: float
    pose: Pose


@dataclass(frozen=True)
class Play:
    """A whole play in one room. things: where the base of each is at the start."""

    room: Room
    actor: Actor
    things: Mapping[str, Point]
    beats: Sequence[Beat]

    @cached_property
    def starts(self) -> list[float]:
        """When each beat begins, in seconds, and when the last one ends."""
        return list(accumulate((beat.seconds for beat in self.beats), lambda a, b: round(a + b, 6), initial=0.0))

    @property
    def seconds(self) -> float:
        """How long the play lasts."""
        return self.starts[-1]

    def picture(self, seconds: float) -> Pixels:
        """(240, 320, 3) RGB picture of one moment."""
        moment = self._moment(seconds)
        canvas, pose = self.room.empty.copy(), moment.pose
        carried = [name for name in self.things if self._hand(moment, name)]
        for name in self.things:
            if name not in carried:
                self._paint(canvas, moment, name)
        # A soft spot on the floor ties the actor to it.
        canvas.ellipse((pose.x, FLOOR + 2), 26, 4, (112, 84, 62))
        self.actor.body(canvas, pose)
        if not pose.facing:
            self.actor.arms(canvas, pose)
        for name in carried:
            self._paint(canvas, moment, name)
        if pose.facing:
            self.actor.arms(canvas, pose)
        return canvas.pixels()

    def relations(self, seconds: float, name: str) -> dict[str, list[str]]:
        """Attention, spatial and contacting relations of the actor to a thing, in Action Genome's words."""
        moment = self._moment(seconds)
        beat = self.beats[moment.beat]
        return {
            "attention_relationship": ["looking_at" if beat.looks == name else "not_looking_at"],
            "spatial_relationship": self._spatial(moment, name, beat.contact(name)),
            "contacting_relationship": list(beat.contact(name) or ("not_contacting",)),
        }

    def bbox(self, seconds: float, name: str) -> tuple[float, float, float, float]:
        """Left, top, width and height of a thing, in pixels."""
        thing = THINGS[name]
        x, y = self._where(self._moment(seconds), name)
        return round(x - thing.width / 2, 1), round(y + thing.grip - thing.height, 1), thing.width, thing.height

    def _spatial(self, moment: Moment, name: str, contacts: tuple[str, ...]) -> list[str]:
        pose = moment.pose
        x, y = self._where(moment, name)
        if BENEATH & set(contacts):
            return ["beneath", "behind"] if "leaning_on" in contacts else ["beneath"]
        if y < FLOOR - pose.hips - TORSO - 24:
            return ["above"]
        if pose.facing == 0:
            return ["in_front_of"] if name in self.beats[moment.beat].held else ["on_the_side_of"]
        return ["in_front_of"] if (x - pose.x) * pose.facing >= 0 else ["behind"]

    def _moment(self, seconds: float) -> Moment:
        number = max(n for n, start in enumerate(self.starts[:-1]) if start <= seconds + 1e-9)
        share = (seconds - self.starts[number]) / self.beats[number].seconds
        return Moment(number, share, self._pose(number, share))

    def _pose(self, number: int, share: float) -> Pose:
        last, beat = self.beats[max(0, number - 1)], self.beats[number]
        walks = abs(beat.pose.x - last.pose.x) > 12 and last.pose.hips == beat.pose.hips == STANDING
        taken = [name for name in beat.held if name not in last.held] if number else []
        start, before = 0.0, last.pose
        if taken or beat.puts:
            start, target = TRANSFER, beat.via or self._transfer(last, beat, number, taken)
            if share < TRANSFER:
                return between(before, target, _smooth(share / TRANSFER))
            before = target
        done = min(1.0, (share - start) / ((0.92 if walks else SETTLED) - start))
        pose = between(before, beat.pose, done if walks else _smooth(done))
        if walks:
            pose = _step(replace(pose, facing=beat.pose.facing), beat, abs(pose.x - before.x), done)
        if beat.busy != (0.0, 0.0) and share > SETTLED / 2:
            swing = math.sin(share * beat.seconds * 2 * math.pi * 1.1)
            pose = replace(pose, near=(pose.near[0] + beat.busy[0] * swing, pose.near[1] + beat.busy[1] * swing))
        return pose

    def _transfer(self, last: Beat, beat: Beat, number: int, taken: Sequence[str]) -> Pose:
        """The pose before, its hands at what is taken or at the places where things are put."""
        hands: dict[str, Point] = {}
        for name in (*taken, *beat.puts):
            if name in taken:
                hand, point = beat.held[name], self._where(Moment(number - 1, 1.0, last.pose), name)
            else:
                x, y = beat.puts[name]
                hand, point = last.held[name], (x, y - THINGS[name].grip)
            hands |= {"near": point, "far": point} if hand == "both" else {hand: point}
        return last.pose.reaching(**hands)

    def _hand(self, moment: Moment, name: str) -> str | None:
        """The hand that holds a thing."""
        number = moment.beat if moment.share >= TRANSFER else max(0, moment.beat - 1)
        return self.beats[number].held.get(name)

    def _where(self, moment: Moment, name: str) -> Point:
        """Where a thing is held, or could be held while it lies somewhere, in the picture."""
        if hand := self._hand(moment, name):
            return moment.pose.hand(hand)
        x, y = self.things[name]
        for number, played in enumerate(self.beats[: moment.beat + 1]):
            if name in played.puts and (number < moment.beat or moment.share >= TRANSFER):
                x, y = played.puts[name]
        return x, y - THINGS[name].grip

    def _paint(self, canvas: Canvas, moment: Moment, name: str) -> None:
        held = self._hand(moment, name) is not None
        flip = held and moment.pose.facing < 0
        before, after = (self.beats[number].tilt.get(name, 0.0) for number in (max(0, moment.beat - 1), moment.beat))
        tilt = before + (after - before) * _smooth(min(1.0, moment.share / SETTLED)) if held else 0.0
        used = held or bool(self.beats[moment.beat].contact(name))
        THINGS[name].paint(canvas.at(self._where(moment, name), -tilt if flip else tilt, flip), used)


def _step(pose: Pose, beat: Beat, travelled: float, done: float) -> Pose:
    phase, strength = travelled / STEP * 2 * math.pi, min(1.0, 6 * (1 - done))
    forward, lift = 15 * math.sin(phase) * strength, 7 * math.cos(phase) * strength
    near, far = (forward, max(0.0, lift)), (-forward, max(0.0, -lift))
    pose = replace(pose, near_foot=near, far_foot=far, hips=STANDING - 1.5)
    return pose if beat.held else replace(pose, near=(-forward, -40.0), far=(forward, -40.0))


def _smooth(share: float) -> float:
    return share * share * (3 - 2 * share)
