"""``twinset eval``: models on benchmarks, and figures of what models or people answered."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from twinset.cli.command import Cache, Device, Only, Resamples, Seed, answer
from twinset.cli.terminal import interval, print_facts, print_table, progress, say, tell
from twinset.contracts.errors import WrongUse

NO_FIGURES = {"n", "groups", "ties", "expected", "interval", "sd"}  # what else is beside figures
Benchmarks = Annotated[tuple[str, ...], typer.Option(metavar="NAME=DIR", help="a benchmark; twinset=OUT for yours")]
Folders = Annotated[tuple[str, ...], typer.Option(metavar="DIR", help="of the next --benchmark NAME without =DIR")]
Batch = Annotated[int, typer.Option(min=1, max=65_536, help="images, texts or pairs in one pass")]
Threads = Annotated[int, typer.Option(min=0, max=4096, help="threads of torch; 0: as many as cores")]
Seeds = Annotated[tuple[str, ...], typer.Option(metavar="NAME=MODEL,…", help="models that are seeds of one: NAME")]
By = Annotated[str, typer.Option(metavar="COLUMNS", help="figures also for each combination of their values")]
Group = Annotated[str | None, typer.Option(help="column of the source, whose rows are resampled together")]


def run(
    *,
    benchmark: Benchmarks,
    model: tuple[str, ...],
    out: Path,
    data: Folders = (),
    only: Only = (),
    prompt: tuple[str, ...] = (),
    seeds: Seeds = (),
    limit: Annotated[int | None, typer.Option(min=1)] = None,
    seed: Seed = 0,
    cache: Cache = None,
    device: Device = "cpu",
    batch: Batch = 32,
    threads: Threads = 0,
) -> None:
    """Score benchmarks with models and write a report; the same command resumes a run that was stopped.

    Args:
        model: such as open_clip:ViT-B-32:openai, clip:FOLDER or, to try things out, random:ViT-B-32
        out: folder of the run: scores and report
        prompt: name, or FILE.yaml, of what multimodal language models are asked by in place of their own prompt
        limit: only so many examples of each subset, the same ones for every model
        seed: of the examples that --limit draws
    """
    import twinset

    how: dict[str, Any] = {"limit": limit, "seed": seed, "cache": cache, "device": device, "batch": batch}
    how |= {"threads": threads, "subsets": only, "prompts": prompt, "seeds": _by_name(seeds)}
    with progress() as rows:
        how["on_progress"] = lambda name, model, done: rows.show(f"{model} on {name}", f"{done:,} examples", done)
        document = twinset.evaluate(named(benchmark, data), model, out, **how)
    answer(document, lambda: print_run(document))


def _by_name(seeds: Sequence[str]) -> dict[str, list[str]]:
    runs = dict[str, list[str]]()
    for name, models in (_pair(text, "NAME=MODEL,MODEL; * in it stands for any text") for text in seeds):
        runs.setdefault(name, []).extend(_names(models))
    return runs


def named(benchmarks: Sequence[str], folders: Sequence[str]) -> list[tuple[str, str]]:
    """Names and folders of benchmarks: ``NAME=DIR``, or the next of ``--data``."""
    waiting = [name for name in benchmarks if "=" not in name]
    if len(waiting) != len(folders):
        counts = f"{len(waiting)} --benchmark without =DIR, {len(folders)} --data"
        raise WrongUse(f"{counts}: there must be as many; write --benchmark NAME=DIR for each")
    left = iter(folders)
    return [named_folder(name if "=" in name else f"{name}={next(left)}") for name in benchmarks]


def print_run(run: dict[str, Any]) -> None:
    """The figures of what was scored, and where it lies."""
    for scores in run["scores"]:
        notes = [f", {count:,} left out: {reason}" for reason, count in scores["left_out"].items()]
        notes += [f", {count:,} questions unanswered: {reason}" for reason, count in scores["unanswered"].items()]
        notes += [f", {scores['cut_texts']:,} texts longer than the model reads"] if scores["cut_texts"] else []
        say(f"{scores['benchmark']}, {scores['model']}: {scores['rows']:,} scored{''.join(notes)}; {scores['path']}")
        # Subsets that ask in different ways have no figures together.
        whole = scores["figures"]
        for subset, figures in ({"": whole} if whole.keys() - NO_FIGURES else scores["by_subset"]).items():
            for name in [name for name in figures if name not in NO_FIGURES]:
                spread, tied = interval(*figures["interval"].get(name, (None, None))), figures["expected"].get(name)
                ties = f", {tied:.2f} with ties broken at random" if figures["ties"] and tied is not None else ""
                say(f"  {subset}{' ' * bool(subset)}{name:16} {figures[name]:8.2f}  {spread}{ties}")
    say(run["report"])


def report(run_folder: Path, *, benchmark: tuple[str, ...] = (), seeds: Seeds = ()) -> None:
    """Write the report of a run again, from its scores; no model is needed.

    Args:
        run_folder: folder that twinset eval run --out wrote
        benchmark: NAME=DIR: a benchmark's folder, for pictures of mistakes that the run does not hold yet
    """
    from twinset.evaluation.benchmarks.built_dataset import open_benchmarks
    from twinset.evaluation.report.page import write_report  # it draws

    folders, models = [named_folder(text) for text in benchmark], _by_name(seeds)
    opened = [part for name, folder in folders for part in open_benchmarks(name, folder)]
    written = write_report(run_folder, {part.name: part for part in opened}, seeds=models)
    answer({"written": [str(path) for path in written]})


def submission(*, benchmark: str, model: str, out: Path, cache: Cache = None, device: Device = "cpu") -> None:
    """Write what a benchmark's server takes: the images that a model ranks first (cirr-test).

    Args:
        benchmark: NAME=DIR: a benchmark without public targets, and its folder
        out: folder of the files to send, one a subset
    """
    from twinset.evaluation.benchmarks import open_benchmark
    from twinset.evaluation.submissions import write_submissions
    from twinset.models.encoders.contract import Running

    opened, running = open_benchmark(*named_folder(benchmark)), Running(device)
    answer({"written": [str(path) for path in write_submissions(opened, model, out, cache, running)]})


def benchmarks(folder: Path | None = None) -> None:
    """List the benchmarks: examples, licence, where the files come from, and which lie in a folder.

    Args:
        folder: where, or in whose folders, they are looked for; their examples are counted, without images
    """
    from twinset.evaluation.benchmarks.listing import listing

    listed, rows = listing(folder), []
    for benchmark in listed:
        places = "; ".join(f"{place['folder']}: {_counted(place)}" for place in benchmark["present"])
        row = {name: benchmark[name] for name in ("name", "title", "examples", "licence")}
        rows.append({**row, "where": places or (benchmark["obtained"] if folder is None else "not here")})
    answer({"benchmarks": listed}, lambda: print_table(rows))


def _counted(place: dict[str, Any]) -> str:
    lost = [f"{count:,} left out: {reason}" for reason, count in place["left_out"].items()]
    return "; ".join([f"{sum(place['subsets'].values()):,} examples", *lost])


def _names(text: str) -> list[str]:
    """Names with commas between them."""
    return [name.strip() for name in text.split(",") if name.strip()]


def named_folder(text: str) -> tuple[str, str]:
    """A benchmark and its folder, ``NAME=DIR``."""
    return _pair(text, "NAME=DIR, such as sugarcrepe=data/sugarcrepe")


def _pair(text: str, form: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    if not (name and value):
        raise WrongUse(f"{text!r}: write {form}")
    return name, value


def print_figures(measured: Iterable[tuple[str, int | None, Mapping[str, Any]]]) -> None:
    """Print figures (`evaluation.metrics.figures.Figure`), a line each, of labels with their number of rows."""
    rows = []
    for label, count, figures in measured:
        for name, figure in figures.items():
            digits = 4 if name.startswith("mean_") else 2  # percent, but for means of numbers
            expected = "" if figure.expected is None else f"{figure.expected:.2f}"
            value, spread = f"{figure.value:.{digits}f}", interval(figure.low, figure.high, digits)
            columns = {"rows": label, "n": "" if count is None else count, "figure": name, "value": value}
            rows.append({**columns, "95 % interval": spread, "ties broken at random": expected})
    print_table(rows)


def scores(
    file: str,
    *,
    by: By = "",
    group: Group = None,
    threshold: Annotated[float | None, typer.Option(min=-1e9, max=1e9)] = None,
    seed: Seed = 0,
    resamples: Resamples = 2000,
    questions: Path | None = None,
    benchmark: tuple[str, ...] = (),
    model: str | None = None,
    out: Path | None = None,
) -> None:
    """Measure a file of scores or outcomes of any model; your own code can write it.

    Args:
        file: Parquet or CSV with columns such as s00 s01 s10 s11 (image, caption); docs/scores.md lists all
        threshold: score above which image and caption match, such as 0.5: adds VALSE's acc, p_c, p_f and min
        questions: the file has scores of the pairs that twinset eval questions wrote there; needs --model and --out
        benchmark: NAME=DIR: the benchmark of the file, or where one of the questions lies now; needs --model and --out
        model: name of the model in the run
        out: put the scores into this folder of a run, and write its report
    """
    if out or model or questions or benchmark:
        if not (out and model and (questions or len(benchmark) == 1)):
            raise WrongUse("a run needs --out RUN, --model NAME, and --questions Q or --benchmark NAME=DIR")
        from twinset.evaluation.from_python import put_scores

        folders = dict(map(named_folder, benchmark))
        put = put_scores(Path(file), model, out, folders, questions, threshold)
        return answer(put, lambda: print_run(put))
    from twinset.evaluation.metrics.measure import measure

    results = measure(file, _names(by), seed, resamples, group=group, threshold=threshold)
    for note in results.notes:
        tell(note)
    labels = {"all": results.all, **results.by}
    rows = [(label or "(none)", part.n, part.figures) for label, part in labels.items()]
    answer(results.as_json(), lambda: print_figures(rows))


def questions(*, benchmark: Benchmarks, out: Path, data: Folders = (), only: Only = ()) -> None:
    """Write what benchmarks ask, for a model that runs elsewhere: images, texts, and the pairs to score.

    Args:
        out: new folder
    """
    from twinset.evaluation.questions.asked import write_questions

    answer({"out": out, **write_questions(named(benchmark, data), only, out)})


def compare(
    a: str,
    b: str,
    *,
    key: str = "key",
    in_order: bool = False,
    by: By = "",
    group: Group = None,
    seed: Seed = 0,
    resamples: Resamples = 2000,
) -> None:
    """Compare two files of scores, row by row: A minus B, with intervals and McNemar's test.

    Args:
        a: a file, as for twinset eval scores
        b: a file, as for twinset eval scores
        key: columns that identify a row in both files, with commas between them
        in_order: join row n of A with row n of B, where the files have no key
    """
    from twinset.evaluation.metrics.compare import compare as compared

    columns = None if in_order else _names(key)
    comparison = compared(a, b, _names(by), seed, resamples, key=columns, group=group)
    for note in comparison.notes:
        tell(note)
    document = comparison.as_json()
    answer(document, lambda: print_table(document["table"]))


def answers(folder: Path, *, out: Path | None = None, seed: Seed = 0, resamples: Resamples = 2000) -> None:
    """Measure what a multimodal language model answered to: which of two captions fits the image?

    Args:
        folder: with positive-first/SPLIT.json and negative-first/SPLIT.json, as SugarCrepe released them
        out: also write the choices as a Parquet file of scores, for twinset eval compare
    """
    from twinset.evaluation.answers.figures import document_of, measure_answers, read_answers, write_choices

    read = read_answers(folder)
    figures = measure_answers(read, seed, resamples)
    if out is not None:
        write_choices(out, read, f"answers in {folder.name}")
    document = document_of(read, figures)

    def show() -> None:
        for split, orders in figures.items():
            print_figures((f"{split} {order.replace('_', ' ')}", *measured) for order, measured in orders.items())
        say(f"read in another way by the released evaluation: {len(document['differences']):,}")
        for row in document["unparsed"]:  # as literals: an answer can hold control characters
            say(f"{row['file']}: {row['key']}: {row['reason']}: {row['text'][:160]!r}")

    answer(document, show)


def human(
    stage: str, *, out: Path | None = None, data: str | None = None, seed: Seed = 0, resamples: Resamples = 2000
) -> None:
    """Measure what people answered in a stage of human-baseline: I2T, T2I and group score, as of models.

    Args:
        stage: its folder, such as OUT/_stages/human-baseline
        out: folder of a run on the same pairs: also write people's outcomes beside its scores, for twinset eval report
        data: with --out: the dataset of the pairs, where it is not the one that holds the stage
    """
    from twinset.evaluation.metrics.figures import Figure
    from twinset.evaluation.people import GUESSING, read_people, references, write_people

    if data is not None and out is None:
        raise WrongUse("--data: is for --out RUN, whose models were asked about the same pairs; name one")
    people = read_people(stage, seed, resamples)
    written = [] if out is None else write_people(people, out, data)
    # As BiVLC's Table 2: people, by kind and by annotator, what the paper has, guesses.
    rows: list[tuple[str, int | None, Mapping[str, Any]]] = [("people", people.pooled.all.n, people.pooled.all.figures)]
    rows += [(kind, part.n, part.figures) for kind, part in people.pooled.by.items()]
    for name, annotator in people.annotators.items():
        right = Figure(100 * annotator["right"] / annotator["answers"])
        rows.append((name, annotator["answers"], {"answers": right}))
    for paper in references():
        figures = {name: Figure(value) for name, value in paper.figures[""].items()}
        rows.append((f"{paper.name} ({paper.source})", None, figures))
    rows.append(("guesses", None, GUESSING))

    agreement = people.report["agreement"]
    facts = {"mean_kappa": agreement["mean"], "pooled_kappa": agreement.get("pooled"), "written": written}

    def show() -> None:
        print_figures(rows)
        print_facts({"pairs without all four answers": people.as_json()["undecided"], **facts})

    answer({**people.as_json(), **facts}, show)


def blind(
    benchmarks: tuple[str, ...],
    *,
    only: Only = (),
    model: str | None = None,
    detectors: Path | None = None,
    out: Path | None = None,
    cache: Cache = None,
    device: Device = "cpu",
    seed: int = 0,
) -> None:
    """Measure what a benchmark gives away to blind guesses: lengths, words, classifiers of captions and images.

    Args:
        benchmarks: NAME=DIR: a benchmark and its folder; twinset=OUT for yours
        model: the dual encoder whose features --detectors read, such as open_clip:ViT-B-32:openai
        detectors: what twinset train detectors wrote for this model: also test these
        out: folder of a run: writes RUN/probes/NAME.json, which its report shows
        seed: of the folds of classifiers
    """
    from twinset.evaluation.benchmarks.built_dataset import BuiltDataset, Part, open_benchmarks
    from twinset.evaluation.blind_probes.document import write_probes
    from twinset.evaluation.blind_probes.run import give_away

    folders = [named_folder(text) for text in benchmarks]
    if (detectors is None) != (model is None):
        raise WrongUse("--detectors reads features of a model: name it with --model, and detectors with --detectors")
    if out and len({name for name, _ in folders}) < len(folders):
        raise WrongUse(f"{' '.join(benchmarks)}: a benchmark is named twice; both would go to {out}/probes")
    opened = []
    for name, folder in folders:
        # Images need not lie there, and none is looked for, where only captions are probed.
        for part in open_benchmarks(name, folder, only, captions_only=not model):
            if isinstance(part, Part) and part.kind not in ("pair", "text-pair"):
                tell(f"{part.name}: not probed, it has no pairs of captions")
                continue
            if isinstance(part, BuiltDataset):
                part.every_split = True
            opened.append(part)
    if not opened:
        raise WrongUse(f"{' '.join(benchmarks)}: no pairs of captions, which probes are about; name another benchmark")
    similarities = trained = None
    if model and detectors:
        from twinset.evaluation.blind_probes.detectors import read_detectors
        from twinset.evaluation.blind_probes.run import features_of
        from twinset.models.encoders.contract import Running

        trained = read_detectors(detectors)
        similarities = features_of(model, cache, Running(device), trained)
    probes = [give_away(part, seed, similarities, trained) for part in opened]
    if out:
        for probed in probes:
            write_probes(probed, out)
    documents = [probed.model_dump() for probed in probes]
    answer(documents, lambda: [*map(_print_probes, documents)])


def _print_probes(document: dict[str, Any]) -> None:
    rule, rows = document["rule"], list[dict[str, Any]]()
    say(f"{document['title']}: {document['all']['pairs']:,} pairs of {document['all']['groups']:,} groups, chance 50 %")
    for name, row in {"all": document["all"], **document["by"]}.items():
        shares = {"one bag of words": row["same_bag"]}
        shares |= {f"detectors: {detected}": share for detected, share in row["detectors"].items()}
        of = {"rows": name, "pairs": row["pairs"]}
        rows += [
            {**of, "guess": guess, "right %": f"{right:.2f}"} for guess, right in shares.items() if right is not None
        ]
        for probe, guessed in row["probes"].items():
            guess = probe if "classifier" in guessed["guess"] else guessed["guess"]
            figures = {"guess": guess, "right %": f"{guessed['expected']:.2f}", "ties %": f"{guessed['ties']:.2f}"}
            flag = "SOLVED" if guessed["solves"] else "predictable" if guessed["flagged"] else ""
            spread = interval(guessed["low"], guessed["high"]) or "too few groups"
            rows.append({**of, **figures, "95 % interval": spread, "flag": flag})
    print_table(rows)
    limit = f"{rule['chance'] + rule['margin']:g} %"
    say(f"Flagged where the interval begins above {limit}; docs/blind_probes.md explains the guesses.\n")
    notes = [f"{count:,} examples left out: {reason}" for reason, count in document["left_out"].items()]
    for note in (*notes, *document["notes"]):
        tell(f"{document['benchmark']}: {note}")


COMMANDS = (run, report, submission, benchmarks, questions, scores, compare, answers, human, blind)
