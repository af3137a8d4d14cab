"""How long annotators wait for the next task of the review page while strangers hold and flood its connections.

    python tests/benchmarks/bench_review_under_load.py [--seconds N] [--idle N] [--rate N]

A server of 2,000 tasks in a process of its own; 20 annotators, each of whom asks for a task, answers it and waits a
second; at first alone, then with the others: 2,000 sockets that send nothing, each opened again a second after it was
closed, and 100 requests a second without a valid link, half of which never end. All come from one address, as behind a
proxy. Goal: 95 % of next tasks within 0.5 s (on a busy machine: within twice what it is alone), nobody refused.
"""

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import time
from pathlib import Path
from statistics import quantiles
from subprocess import PIPE
from tempfile import TemporaryDirectory

import psutil
from measured import row

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from tests.review.asked import SECRET, candidate, painted_app, stage_of  # noqa: E402
from twinset.review.access import Access, Person  # noqa: E402
from twinset.review.opening import serve  # noqa: E402

ANNOTATORS = [f"person{number:02d}" for number in range(20)]
TASKS, PAUSE, GOAL = 2_000, 1.0, 0.5
ACCESS = Access(SECRET, ANNOTATORS)


async def say(port: int, lines: str, body: str = "") -> tuple[int, bytes]:
    """One request on a connection of its own: the status and the body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(
            f"{lines}\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        reply = await reader.read(-1)
    finally:
        writer.close()
    head, _, content = reply.partition(b"\r\n\r\n")
    return int(head.split()[1]), content


async def annotate(port: int, name: str, until: float, waits: list[float], refused: list[int]) -> None:
    """Work until a time: seconds of each next task, and statuses that are not 200 (0: the connection broke)."""
    person = Person(name, "annotator")
    own = f"Cookie: {ACCESS.cookie(person)}={ACCESS.token(person)}\r\nX-CSRF-Token: {ACCESS.csrf(person)}"
    while (start := time.monotonic()) < until:
        try:
            status, content = await say(port, f"GET /api/next HTTP/1.1\r\n{own}")
            waits.append(time.monotonic() - start)
            if status == 200:
                answer = json.dumps({"id": json.loads(content)[0]["id"], "option": "o0", "seconds": 1.0})
                lines = f"POST /api/answer HTTP/1.1\r\nContent-Type: application/json\r\n{own}"
                status, content = await say(port, lines, answer)
        except (OSError, IndexError):
            status = 0
        if status != 200:
            refused.append(status)
        await asyncio.sleep(PAUSE)


async def work(port: int, seconds: float) -> tuple[list[float], list[int]]:
    """All annotators for some seconds."""
    waits: list[float] = []
    refused: list[int] = []
    until = time.monotonic() + seconds
    await asyncio.gather(*(annotate(port, name, until, waits, refused) for name in ANNOTATORS))
    return waits, refused


def busy(process: int) -> float:
    """Seconds of the processor that a process has used."""
    times = psutil.Process(process).cpu_times()
    return float(times.user + times.system)


async def attack(port: int, idle: int, rate: int) -> None:
    """Hold idle sockets and send requests without a link, until this process is ended."""

    async def hold() -> None:
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                await reader.read(-1)
                writer.close()
            await asyncio.sleep(1)

    async def request(number: int) -> None:
        with contextlib.suppress(OSError, IndexError):
            if number % 2:
                await say(port, "GET /?token=made-up HTTP/1.1")
            else:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"GET / HTTP/1.1\r\nX: ")
                await reader.read(-1)
                writer.close()

    running = [asyncio.create_task(hold()) for _ in range(idle)]
    await asyncio.sleep(2)
    print("ready", flush=True)
    for number in range(10**9):
        running.append(asyncio.create_task(request(number)))
        await asyncio.sleep(1 / rate)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--idle", type=int, default=400)
    parser.add_argument("--rate", type=int, default=100)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--attack", type=int, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        out = Path(asked.serve)
        app, _ = painted_app(out, [stage_of("s", [candidate("s", "match", n) for n in range(TASKS)], out)], ANNOTATORS)
        serve(app, "127.0.0.1", 0, lambda base: print(base.rpartition(":")[2], flush=True))
        return
    if asked.attack:
        asyncio.run(attack(asked.attack, asked.idle, asked.rate))
    again = [sys.executable, __file__, "--idle", str(asked.idle), "--rate", str(asked.rate)]
    with (
        TemporaryDirectory() as folder,
        subprocess.Popen([*again, "--serve", folder], stdout=PIPE) as server,
    ):
        assert server.stdout is not None
        port = int(server.stdout.readline())
        before_cpu = busy(server.pid)
        alone, refused = asyncio.run(work(port, asked.seconds))
        alone_cpu = busy(server.pid) - before_cpu
        with subprocess.Popen([*again, "--attack", str(port)], stdout=PIPE) as attacker:
            assert attacker.stdout is not None
            attacker.stdout.readline()
            before_cpu = busy(server.pid)
            under, refused_under = asyncio.run(work(port, asked.seconds))
            under_cpu = busy(server.pid) - before_cpu
            attacker.kill()
        server.kill()
    before, after = (quantiles(waits, n=20)[-1] for waits in (alone, under))
    print(
        f"next task, 95 %: {1000 * before:.1f} ms alone ({len(alone)} tasks), {1000 * after:.1f} ms with {asked.idle} "
        f"idle sockets and {asked.rate} requests/s of strangers ({len(under)} tasks); ratio {after / before:.1f}; "
        f"longest {1000 * max(under):.0f} ms; refused: {len(refused)} alone, {len(refused_under)} under attack; the "
        f"server's share of a core: {alone_cpu / asked.seconds:.2f} alone, {under_cpu / asked.seconds:.2f} under attack"
    )
    row(
        f"next task, 95 %, with {asked.idle:,} idle sockets and {asked.rate} requests/s of strangers",
        "annotators alone",
        [after / before],
        f"{1000 * before:.0f} and {1000 * after:.0f} ms; {len(refused_under)} refused",
    )
    if after > max(GOAL, 2 * before) or refused_under:
        sys.exit(f"over the goal: 95 % within {GOAL} s, and nobody refused ({sorted(set(refused_under))})")


if __name__ == "__main__":
    main()
