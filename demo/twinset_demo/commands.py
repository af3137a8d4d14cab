"""``twinset eval demo`` and ``twinset train demo``: both read a built demo, and build it first where it is absent."""

from dataclasses import asdict
from pathlib import Path

from twinset.cli.command import Cache, answer
from twinset.cli.terminal import progress, say, tell


def eval_demo(*, data: Path = Path("out/demo"), out: Path = Path("out/eval-demo"), cache: Cache = None) -> None:
    """Score the demo with the small CLIP that ships and with random weights, and write a report; no download.

    Args:
        data: folder of the demo, built first where it is absent
        out: folder of the run
    """
    from twinset_demo.scoring import score_demo

    _ensure_built(data)
    with progress() as rows:
        scored, page = score_demo(
            data, out, cache, lambda name, model, done: rows.show(f"{model} on {name}", f"{done:,} examples")
        )
    lines = [f"{score.benchmark}, {score.model}: {score.rows:,} scored" for score in scored]
    answer({"scores": [asdict(score) for score in scored], "report": page}, lambda: say(*lines, page, sep="\n"))


def train_demo(*, data: Path = Path("out/demo"), out: Path = Path("out/train-demo")) -> None:
    """Train a small dual encoder on the demo's hard negatives, too few to learn much; no download.

    Args:
        data: folder of the demo, built first where it is absent
        out: folder of the run
    """
    import twinset

    _ensure_built(data)
    pairs = f"{data}:trohn-text"
    with progress() as rows:
        result = twinset.train(
            (pairs,),
            out,
            on_progress=rows.trained,
            split="train",
            validation=(pairs,),
            validation_split="test",
            model="small-clip",
            weights=None,
            objective="negative-texts",
            batch=16,
            steps=40,
            lr=5e-4,
            warmup=4,
            transform="evaluation",
            validate_every=10,
            threads=1,
            workers=1,
        )
    answer(result)


def _ensure_built(data: Path) -> None:
    import twinset

    if not any(data.glob("*/_meta/stage.json")):
        tell(f"{data}: no dataset there; building the demo, which takes a minute")
        twinset.build("demo", str(data))
