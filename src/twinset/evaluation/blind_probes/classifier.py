"""A linear classifier of differences between two halves of a pair, cross-validated by group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from twinset.contracts.errors import WrongUse

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

FOLDS = 5
REPEATS = 3  # of the cross-validation, in other folds: a single one moves the share by one or two points
BUCKETS = 1 << 18  # that n-grams are hashed into
LONGEST = 3  # words of an n-gram
TOKEN = r"\w+|[^\w\s]"  # punctuation too: whether a caption ends with a full stop can give it away
#: Inverse strength of the penalty on weights; fixed, so that no fold is tuned on what it is tested with.
STRENGTH = 1.0

Differences = Any  # csr_matrix or (n, d) array


def text_differences(captions0: Sequence[str], captions1: Sequence[str]) -> csr_matrix:
    """Counts of n-grams of the first captions less those of the second, hashed, and the gaps of their lengths.

    n-grams are of 1 to 3 words or marks, in their own case. Swapping the captions changes the sign of a row and nothing
    else, so the place of a caption gives nothing away.

    Returns:
        (n, BUCKETS + 2) float64. The last two columns: gap in characters / 10, gap in words.
    """
    check_installed()
    from scipy.sparse import csr_matrix, hstack
    from sklearn.feature_extraction.text import HashingVectorizer

    hashed = HashingVectorizer(
        n_features=BUCKETS, ngram_range=(1, LONGEST), token_pattern=TOKEN, lowercase=False, norm=None
    )
    gaps = [
        [(len(one) - len(other)) / 10, len(one.split()) - len(other.split())]
        for one, other in zip(captions0, captions1, strict=True)
    ]
    difference = hashed.transform(captions0) - hashed.transform(captions1)
    return csr_matrix(hstack([difference, csr_matrix(np.array(gaps, np.float64))]))


def cross_validated(differences: Differences, groups: NDArray[Any], seed: int) -> NDArray[np.float64] | None:
    """For each pair, how much the first half looks like a first half to a classifier that has not seen its group.

    Logistic regression without intercept on differences x of features: P(first is first) = 1 / (1 + exp(−w·x)). It is
    antisymmetric: of −x it says the opposite. Half of the pairs are shown to it in the other order, since it needs
    examples of both classes; the loss is the same in either order.

    Args:
        differences: (n, d), features of the first half less those of the second.
        groups: (n,), pairs of one group are in one fold.
        seed: of the folds.

    Returns:
        The mean of w·x over repeats, (n,): above 0 where the guess is right, exactly 0 where it has nothing to go by.
        None with one group.
    """
    check_installed()
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import GroupKFold

    folds = min(FOLDS, len(np.unique(groups)))
    if folds < 2:
        return None
    if hasattr(differences, "indices"):  # buckets that no n-gram of these pairs falls into would only take time
        differences = differences[:, np.unique(differences.indices)]
    found = np.zeros(differences.shape[0])
    if not differences.shape[1]:  # equal captions, in every pair
        return found
    random = np.random.default_rng(seed)
    for repeat in range(REPEATS):
        turned = np.where(random.random(len(found)) < 0.5, -1.0, 1.0)
        split = GroupKFold(folds, shuffle=True, random_state=seed + repeat).split(differences, groups=groups)
        for train, test in split:
            signs = turned[train]
            if len(train) < 2:
                continue
            if abs(signs.sum()) == len(signs):  # one class only, of a few pairs
                signs = signs * np.where(np.arange(len(signs)) % 2, -1.0, 1.0)
            shown = differences[train]
            shown = shown.multiply(signs[:, None]).tocsr() if hasattr(shown, "multiply") else shown * signs[:, None]
            model = LogisticRegression(C=STRENGTH, fit_intercept=False, solver="liblinear", random_state=seed)
            model.fit(shown, signs > 0)
            found[test] += differences[test] @ model.coef_[0] / REPEATS
    return found


def check_installed() -> None:
    """Raise `WrongUse` without scikit-learn."""
    try:
        import sklearn  # noqa: F401
    except ImportError as error:
        raise WrongUse("the classifiers of blind probes need scikit-learn; pip install 'twinset[models]'") from error
