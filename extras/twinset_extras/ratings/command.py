"""``twinset eval agreement``: scores of images beside people's ratings."""

from typing import Any

from twinset import WrongUse
from twinset.cli.command import Resamples, Seed, answer
from twinset.cli.terminal import interval, print_table, tell


def agreement(
    ratings: str,
    *,
    scores: tuple[str, ...] = (),
    key: str = "key",
    score: str = "score",
    seed: Seed = 0,
    resamples: Resamples = 2000,
) -> None:
    """Compare scores of generated images with people's ratings: Kendall's tau-b, Spearman's rho, Pearson's r.

    Args:
        ratings: released ratings, tifa=DIR, dsg=DIR or geneval=DIR; or CSV or Parquet with the columns key and rating,
            a row for each rating, and group for the prompt
        scores: scores of the same images: CSV or Parquet, such as the index of a stage of image-verification
        key: column of the keys in every file of scores
        score: column of the scores in every file of scores
    """
    from twinset_extras.ratings.agreement import agreement as agreed
    from twinset_extras.ratings.released import read_ratings, read_scores

    if twice := next((file for n, file in enumerate(scores) if file in scores[:n]), None):
        raise WrongUse(f"--scores names {twice} twice; name each file once")
    read = {file: read_scores(file, key, score) for file in scores}
    agreements = agreed(read_ratings(ratings), read, seed, resamples)
    rows = []
    for name, check in agreements.checks.items():
        row: dict[str, Any] = {"check": name, "images": check.n}
        for figure, value in check.figures.items():
            row |= {figure: f"{value.value:.3f}", f"{figure} 95 %": interval(value.low, value.high, 3)}
        rows.append(
            row | {"published": ", ".join(f"{figure} {value:.3f}" for figure, value in check.published.items())}
        )
    for note in agreements.notes:
        tell(note)
    answer(agreements.as_json(), lambda: print_table(rows))
