"""Questions of both captions of a pair, asked of both images (VisMin, section 3): a row a pair."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from twinset.contracts.candidate import Candidate
from twinset.generators.image_verification.questions import ImageQuestion, distinguishing
from twinset.generators.image_verification.scoring import answered, score_of

SIDES = (0, 1)
SHOWN = ("image0_sha256", "image1_sha256", "caption0", "caption1")
READ = ("key", "split", "group", "tar", *SHOWN)
COLUMNS = pa.schema(
    [
        *(pa.field(name, pa.string(), nullable=False) for name in ("subject", *SHOWN, "questions")),
        *(pa.field(name, pa.int32(), nullable=False) for name in ("question_count", "distinguishing_count")),
        *(pa.field(name, pa.float64(), nullable=False) for name in ("score0", "score1", "distinguishing_score")),
    ]
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCandidate(Candidate):
    """A pair of an earlier stage. tar, subject: where it lies, and its key."""

    tar: str
    subject: str
    image0_sha256: str
    image1_sha256: str
    caption0: str
    caption1: str

    @property
    def stored_key(self) -> str:
        return self.subject

    @property
    def texts(self) -> tuple[str, str]:
        return self.caption0, self.caption1

    @property
    def images(self) -> Mapping[str, str]:
        """sha256 by role."""
        return {"image0": self.image0_sha256, "image1": self.image1_sha256}


def row_of(
    one: PairCandidate, asked: tuple[Sequence[ImageQuestion], ...], found: Sequence[Mapping[str, float]]
) -> dict[str, Any]:
    """A row with all answers.

    A question is answered rightly if it counts for the image of its caption and, where the other caption does not ask
    it, not for the other image.

    Args:
        asked: questions of both captions.
        found: probability of yes by question, for both images.
    """
    told: list[dict[str, Any]] = []
    for side in SIDES:
        questions, alone = asked[side], distinguishing(asked[side], asked[1 - side])
        own, other = (answered(questions, found[image]) for image in (side, 1 - side))
        told += [
            {
                "caption": side,
                **each.as_json(),
                "distinguishes": each.meaning in alone,
                "yes": [float(answers[each.question]) for answers in found],
                "counted": here,
                "right": here and not (each.meaning in alone and there),
            }
            for each, here, there in zip(questions, own, other, strict=True)
        ]
    scores = [score_of(asked[side], found[side]) for side in SIDES]
    apart = [each["right"] for each in told if each["distinguishes"]]
    return {
        **{name: getattr(one, name) for name in ("subject", *SHOWN)},
        "questions": json.dumps(told, ensure_ascii=False),
        "question_count": len(told),
        "distinguishing_count": len(apart),
        "score0": scores[0],
        "score1": scores[1],
        "distinguishing_score": sum(apart) / len(apart) if apart else 1.0,
    }


def problem_of(row: Mapping[str, Any], threshold: float) -> tuple[str, str] | None:
    """Reason and detail of a rejection: the first question that is answered wrongly, of those that tell the captions
    apart if there is one; None where these are all right and both images have the threshold by their own captions."""
    if row["distinguishing_score"] == 1 and min(row["score0"], row["score1"]) >= threshold:
        return None
    told = json.loads(row["questions"])
    wrong = [each for each in told if not each["right"]]
    first = next((each for each in wrong if each["distinguishes"]), (wrong or sorted(told, key=_own_yes))[0])
    yes = " and ".join(f"{value:.2f}" for value in first["yes"])
    detail = f"of caption {first['caption']}: {first['question'][:200]} yes {yes} for image 0 and 1"
    return f"wrong-{first['kind']}", detail


def _own_yes(question: Mapping[str, Any]) -> float:
    """The probability of yes for the image of the question's caption."""
    return float(question["yes"][question["caption"]])
