"""Small videos that are odd in one way each, whose every picture shows its own number."""

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from twinset.contracts.kinds.samples import Pixels

WIDTH, HEIGHT, BITS = 128, 96, 8
RATE = 25


def draw(number: int) -> Pixels:
    """A picture with its number as eight black and white bars over noise that moves."""
    noise = np.random.default_rng(7).integers(0, 256, (HEIGHT, WIDTH * 4), dtype=np.uint8)
    picture = np.repeat(np.roll(noise, -3 * number, axis=1)[:, :WIDTH, np.newaxis], 3, axis=2)
    for bit in range(BITS):
        picture[: HEIGHT // 2, bit * 16 : bit * 16 + 16] = 255 * (number >> bit & 1)
    return np.ascontiguousarray(picture)


def read(pixels: Pixels) -> int:
    """The number that a decoded picture shows."""
    bars = [pixels[4 : HEIGHT // 2 - 4, bit * 16 + 4 : bit * 16 + 12].mean() for bit in range(BITS)]
    assert all(bar < 96 or bar > 160 for bar in bars), f"no clean number: {bars}"
    return sum(int(bar > 128) << bit for bit, bar in enumerate(bars))


def make_video(
    path: Path,
    count: int = 60,
    ticks: Sequence[int] | None = None,
    codec: str = "libx264",
    options: dict[str, str] | None = None,
    pix_fmt: str = "yuv420p",
) -> Path:
    """Write ``count`` numbered pictures. ticks: times in 1/1000 s; 40 ms apart when absent. options: of the encoder."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=RATE, options=options or {})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, pix_fmt
        time_base = Fraction(1, RATE if ticks is None else 1000)
        stream.time_base = stream.codec_context.time_base = time_base
        for number in range(count):
            frame = av.VideoFrame.from_ndarray(draw(number), format="rgb24")
            frame.pts = number if ticks is None else ticks[number]
            frame.time_base = time_base
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path
