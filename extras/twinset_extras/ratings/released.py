"""People's ratings of generated images: as TIFA, DSG and GenEval released them, or in a table of your own."""

import csv
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter

from twinset import WrongUse
from twinset.evaluation.benchmarks.rows import read_rows
from twinset.evaluation.score_files.opening import open_scores

REFETCH = "fetch it again"
_PEOPLE = TypeAdapter(Annotated[tuple[Annotated[float, Field(gt=-1e12, lt=1e12)], ...], Field(min_length=1)])


@dataclass(frozen=True, slots=True)
class Rated:
    """One image. group: its prompt. ratings: one a person, a higher one for an image that shows more of its prompt."""

    group: str
    ratings: tuple[float, ...]

    @property
    def mean(self) -> float:
        return sum(self.ratings) / len(self.ratings)


@dataclass(frozen=True, slots=True)
class Ratings:
    """Rated images by key, and the scores that checks give them.

    where: for messages. published: correlations of checks, by the names of `agreement.correlations`. notes: for
    people.
    """

    where: str
    images: Mapping[str, Rated]
    scores: Mapping[str, Mapping[str, float]]
    published: Mapping[str, Mapping[str, float]]
    notes: Sequence[str] = ()


def read_ratings(place: str) -> Ratings:
    """Ratings of ``NAME=DIR``, one of `RELEASED`; or of a CSV or Parquet file with the columns key and rating.

    A key may have several rows, one a person. Images with the same group, where there is such a column, share a prompt.

    Raises `WrongUse`: a file is missing or is another one.
    """
    name, _, folder = place.partition("=")
    if folder and name in RELEASED:
        return RELEASED[name](Path(folder))
    opened = open_scores(place)
    grouped = "group" in opened.names
    ratings, groups = dict[str, list[float]](), dict[str, str]()
    batch = opened.read(["key", "rating", *(["group"] if grouped else [])])
    keys = batch.texts("key", empty=False).to_pylist()
    prompts = batch.texts("group", empty=False).to_pylist() if grouped else keys
    rows = zip(keys, prompts, batch.numbers("rating").tolist(), strict=True)
    for row, (key, group, rating) in enumerate(rows, 1):
        ratings.setdefault(key, []).append(rating)
        if groups.setdefault(key, group) != group:
            given = f"{groups[key]!r} and {group!r}"
            raise WrongUse(f"{place}: row {row}, key {key!r} has the groups {given}; give it one")
    return Ratings(place, {key: Rated(groups[key], (*given,)) for key, given in ratings.items()}, {}, {})


def read_scores(file: str, key: str, score: str) -> dict[str, float]:
    """Scores by key, from these columns of a CSV or Parquet file; raises `WrongUse` where a key has two."""
    scores = dict[str, float]()
    batch = open_scores(file).read([key, score])
    keys = batch.texts(key, empty=False).to_pylist()
    for image, value in zip(keys, batch.numbers(score).tolist(), strict=True):
        if image in scores:
            raise WrongUse(f"{file}: column {key} has {image!r} twice; leave one row")
        scores[image] = value
    return scores


# TIFA's notebook calls Pearson's r Spearman's.
_TIFA = {
    "meteor": (0.274, 0.340), "bleu": (0.188, 0.183), "rouge": (0.245, 0.329), "spice": (0.232, 0.328),
    "clipscore_vitb32": (0.231, 0.332), "tifa_vilt": (0.382, 0.493), "tifa_git-large": (0.426, 0.545),
    "tifa_ofa-large": (0.372, 0.496), "tifa_blip2-flant5xl": (0.436, 0.559), "tifa_mplug-large": (0.472, 0.597),
}  # fmt: skip
_DSG = {"pali17b": (0.458, 0.571), "mplug": (0.380, 0.463), "instructblip": (0.364, 0.442)}


def _tifa(folder: Path) -> Ratings:
    """TIFA (Hu et al. 2023): two ratings an image, and what ten checks say of it."""
    path = _first(folder, "human_annotations_with_scores.json.gz", "human_annotations_with_scores.json")
    images, scores = dict[str, Rated](), dict[str, dict[str, float]]()
    for row in read_rows(path, ""):
        key, people = row.number, row.value("human_scores", _PEOPLE)
        images[key] = Rated(row.text("text_id"), people)
        for name, value in row.fields.items():
            if isinstance(value, int | float) and name != "human_avg":
                if not _is_number(value):
                    raise WrongUse(f"{row.where}: {name} is not a number; {REFETCH}")
                scores.setdefault(name, {})[key] = float(value)
    published = {name: {"kendall": tau, "pearson": r} for name, (tau, r) in _TIFA.items()}
    return Ratings(str(path), images, scores, published)


DSG_RATINGS = "tifa160-likert-anns.csv"


def _dsg(folder: Path) -> Ratings:
    """DSG (Cho et al. 2024): ratings by five people, and answers of three models to its questions."""
    path = _first(folder, DSG_RATINGS)
    images = read_dsg_ratings(path)
    scores, notes = dict[str, dict[str, float]](), []
    for file in sorted(folder.glob("*_dsg.csv")):
        given = read_dsg_scores(file)
        name, asked = file.name.removesuffix("_dsg.csv"), {key.partition("/")[0] for key in given}
        unasked = [key for key, rated in images.items() if rated.group not in asked]
        if unasked:
            notes.append(f"{name}: {len(unasked)} images without questions score 0, as in the released evaluation")
        scores[name] = {**given, **dict.fromkeys(unasked, 0.0)}
    published = {name: {"kendall": tau, "spearman": rho} for name, (tau, rho) in _DSG.items()}
    return Ratings(str(path), images, scores, published, notes)


def read_dsg_ratings(path: Path) -> dict[str, Rated]:
    """Ratings, 1 to 5, by ``ITEM/MODEL``, of a file such as ``tifa160-likert-anns.csv``."""
    ratings = dict[str, Rated]()
    for where, row in rows_of(path, ("t2i_model", "item_id", "answer")):
        key = f"{row['item_id']}/{row['t2i_model']}"
        before = ratings[key].ratings if key in ratings else ()
        ratings[key] = Rated(row["item_id"], (*before, _number(where, row, "answer")))
    return ratings


def read_dsg_scores(path: Path) -> dict[str, float]:
    """The score of each image, by ``ITEM/MODEL``, by the answers of one model; only "yes" is a yes."""
    answers = dict[str, list[tuple[int, tuple[int, ...], bool]]]()
    for where, row in rows_of(path, ("t2i_model", "item_id", "question_id", "dependency_id", "answer")):
        number, named = row["question_id"], [parent.strip() for parent in row["dependency_id"].split(",")]
        # Of parents 0 is none, and released files have words there.
        parents = [parent for parent in named if any(map(str.isdigit, parent))]
        for column, text in [("question_id", number), *(("dependency_id", text) for text in parents)]:
            if not re.fullmatch(r"[0-9]{1,9}", text) or (column == "question_id" and not int(text)):
                raise WrongUse(f"{where}: {column} is {text[:50]!r}, not the number of a question; {REFETCH}")
        asked = answers.setdefault(f"{row['item_id']}/{row['t2i_model']}", [])
        if any(int(number) == earlier for earlier, *_ in asked):
            raise WrongUse(f"{where}: question_id {number} of this image is answered twice; {REFETCH}")
        yes = row["answer"].strip().lower() == "yes"
        asked.append((int(number), tuple(int(parent) for parent in parents if int(parent)), yes))
    return {key: _score(asked) for key, asked in answers.items()}


def _score(asked: Sequence[tuple[int, tuple[int, ...], bool]]) -> float:
    """The share of questions (number, parents, yes) that count: those answered yes whose parents are too."""
    answers = {number: yes for number, _, yes in asked}
    return sum(yes and all(answers.get(parent, True) for parent in parents) for _, parents, yes in asked) / len(asked)


def _geneval(folder: Path) -> Ratings:
    """GenEval (Ghosh et al. 2023): what five people saw on an image; it is rated 1 if the prompt says so."""
    path, images, broken = _first(folder, "evaluation_metadata.jsonl"), dict[str, Rated](), 0
    prompts = [row.fields for row in read_rows(path, "")]
    for file in sorted(folder.glob("annotations_*.csv")):
        for where, row in rows_of(file, _GENEVAL):
            if not row[_GENEVAL[-1]]:  # cut by a line feed that someone typed
                broken += row["Input.prompt_id"].isdigit()
                continue
            number = int(prompt) if (prompt := row["Input.prompt_id"]).isdecimal() and len(prompt) < 9 else len(prompts)
            key = f"{file.stem.removeprefix('annotations_')}/{row['Input.index']}"
            try:
                rating = float(_as_prompted(prompts[number], row))
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise WrongUse(f"{where}, {path}: {key} is not as in GenEval ({error!r}); fetch both again") from error
            images[key] = Rated(str(number), (*(images[key].ratings if key in images else ()), rating))
    if not images:
        raise WrongUse(f"{folder}: no annotations_*.csv with answers; fetch GenEval's annotations again")
    notes = [f"{broken} broken answers are left out"] if broken else []
    return Ratings(str(folder), images, {}, {}, notes)


_GENEVAL = (
    "Input.index", "Input.prompt_id", "Answer.task-color-0", "Answer.task-color-1", "Answer.task-count-0",
    "Answer.task-count-1", "Answer.task-position-x", "Answer.task-position-y", "Answer.task-quality",
)  # fmt: skip


def _as_prompted(prompt: Mapping[str, Any], row: Mapping[str, str]) -> bool:
    """Whether a person saw every object of the prompt, in its number, colour and place."""
    exact = bool(prompt.get("exclude"))  # prompts that count name the next number as wrong
    for n, wanted in enumerate(prompt["include"]):
        seen = float(row[f"Answer.task-count-{n}"] or 0)
        if seen < wanted["count"] or (exact and seen != wanted["count"]):
            return False
        if "color" in wanted and wanted["color"] not in row[f"Answer.task-color-{n}"].split("|"):
            return False
        if "position" in wanted:
            place = wanted["position"][0].removesuffix(" of")
            if place not in (row["Answer.task-position-x"], row["Answer.task-position-y"]):
                return False
    return True


#: By the name of the data.
RELEASED: Mapping[str, Callable[[Path], Ratings]] = {"tifa": _tifa, "dsg": _dsg, "geneval": _geneval}


def rows_of(path: Path, columns: Collection[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """The rows of a CSV file with a header, each with its place for messages; cells that a row lacks are empty.

    Raises `WrongUse` without a column.
    """
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            read = csv.DictReader(lines, restval="")
            if lacking := [name for name in columns if name not in (read.fieldnames or ())]:
                raise WrongUse(f"{path}: no column {', '.join(lacking)}; {REFETCH}")
            for row in read:
                yield f"{path}: line {read.line_num}", row
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise WrongUse(f"{path}: not a CSV file that can be read ({error}); {REFETCH}") from error


def _number(where: str, row: Mapping[str, str], column: str) -> float:
    try:
        value = float(row[column])
    except ValueError:
        value = math.nan
    if not _is_number(value):
        raise WrongUse(f"{where}: {column} is {row[column][:50]!r}, not a number; {REFETCH}")
    return value


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < 1e12


def _first(folder: Path, *names: str) -> Path:
    places = [place for name in names for place in (folder / name, folder / "human_annotations" / name)]
    if path := next((place for place in places if place.is_file()), None):
        return path
    raise WrongUse(f"{folder}: no {' or '.join(names)}; name the folder that holds it")
