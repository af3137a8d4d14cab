"""Two images with a caption or an answer each: ColorSwap, VisMin, Cola, COCO-Counterfactuals, MMVP, NaturalBench."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import ClassVar

from twinset import WrongUse
from twinset.evaluation.benchmarks.reader import Pairs
from twinset.evaluation.benchmarks.rows import REFETCH, Row, read_rows
from twinset.evaluation.examples import OwnQuestion
from twinset_extras.benchmarks.listed import Listed


class ColorSwap(Pairs):
    """Captions whose colour words are exchanged (Burapacheep et al., 2024); scored as Winoground is."""

    name, title = "colorswap", "ColorSwap (2024)"
    citation, licence = "https://arxiv.org/abs/2402.04492", "MIT"
    counts: ClassVar = {"train": 700, "test": 300}
    expects = "test.json, train.json and the folder images, or Parquet files"
    obtained = "They are in the data set stanfordnlp/colorswap of Hugging Face, once its terms are accepted"

    apart = True
    files: ClassVar = {"train": "train.json", "test": "test.json"}
    splits = ("train", "test")
    image_columns, caption_columns = ("image_1", "image_2"), ("caption_1", "caption_2")
    key_column = "id"


class VisMin(Pairs):
    """One thing changes: object, attribute, count or relation (Awal et al., 2024); text, image and group score.

    About half of the rows have their texts the other way round: ``sim_solution.csv`` tells which, by the order of rows.
    """

    name, title = "vismin", "VisMin (2024)"
    citation, licence = "https://arxiv.org/abs/2407.16772", "CC BY 4.0"
    counts: ClassVar = {"test": 2084}
    expects = "test as Parquet (default/test/0000.parquet …) and sim_solution.csv, with a row for each of its rows"
    obtained = (
        "Rows: mair-lab/vismin-bench of Hugging Face, branch refs/convert/parquet; answers: the folder "
        "vismin-bench/solutions of the repository rabiulcste/vismin"
    )

    splits = ("test",)
    files: ClassVar = {"test": ""}
    image_columns, caption_columns = ("image_0", "image_1"), ("text_0", "text_1")
    category_column = "category"
    _IN_ORDER, _SWAPPED = "T0_I0 > T1_I0 & T1_I1 > T0_I1", "T1_I0 > T0_I0 & T0_I1 > T1_I1"

    def found(self) -> Sequence[str]:
        return super().found() if self._answers() is not None else []

    def annotations(self) -> Sequence[Path]:
        return [*super().annotations(), *filter(None, [self._answers()])]

    def rows(self, subset: str) -> Iterator[Row]:
        """As `Reader.rows`, with the texts in the order of the images."""
        path = self._answers()
        answers = read_rows(path, subset, ("Text", "category")) if path is not None else iter(())
        for row in super().rows(subset):
            if (answer := next(answers, None)) is None:
                raise WrongUse(f"{row.where}: {path} has no row for it; fetch both again")
            order, fields = answer.text("Text"), row.fields
            if order not in (self._IN_ORDER, self._SWAPPED) or answer.fields["category"] != fields["category"]:
                raise WrongUse(f"{answer.where}: is not the answer to {row.where}; fetch both again")
            if order == self._SWAPPED:
                fields = {**fields, "text_0": fields["text_1"], "text_1": fields["text_0"]}
            yield replace(row, fields=fields)

    def _answers(self) -> Path | None:
        return self.in_folders("sim_solution.csv", "", "solutions", "data", "vismin-bench/solutions")


class Cola(Listed):
    """Attributes of several objects (Ray et al., 2023); its accuracy is the image score."""

    name, title = "cola", "Cola, multi-object (2023)"
    citation, licence = "https://arxiv.org/abs/2305.03689", "MIT"
    counts: ClassVar = {"multi-objects": 210}
    expects = "COLA_multiobjects_matching_benchmark.json, and the images of Visual Genome (2390970.jpg …) below"
    obtained = "The annotation is in the folder data of the repository arijitray1993/COLA, with the images' addresses"

    files: ClassVar = {"multi-objects": "COLA_multiobjects_matching_benchmark.json"}
    header = ("image_0", "caption_0", "image_1", "caption_1")
    image_columns, caption_columns = ("image_0", "image_1"), ("caption_0", "caption_1")

    def group(self, row: Row) -> str:
        """Records share images; those that do, also by way of others, are one group."""
        return self._groups[str(row.fields[self.image_columns[0]])]

    @cached_property
    def _groups(self) -> Mapping[str, str]:
        """The group of each name of an image: the first name of those that records connect."""
        first: dict[str, str] = {}

        def root(name: str) -> str:
            while first.setdefault(name, name) != name:
                name = first[name] = first[first[name]]
            return name

        for subset in self.subsets:
            for row in self.rows(subset):
                before, after = sorted(root(str(row.fields[column])) for column in self.image_columns)
                first[after] = before
        return {name: root(name) for name in [*first]}

    def image_name(self, row: Row, column: str) -> str:
        """The last part of the image's address."""
        return super().image_name(row, column).rpartition("/")[2]


class CocoCounterfactuals(Pairs):
    """A noun of a COCO caption exchanged, both images generated (Le et al., 2023)."""

    name, title = "coco-counterfactuals", "COCO-Counterfactuals (2023)"
    citation, licence = "https://arxiv.org/abs/2309.14356", "CC BY 4.0"
    expects = "examples.jsonl, and images.zip unpacked below"
    obtained = "Both are in the folder data of Intel/COCO-Counterfactuals at Hugging Face"

    files: ClassVar = {"test": "examples.jsonl"}
    image_columns, caption_columns = ("image_0", "image_1"), ("caption_0", "caption_1")
    key_column = "id"

    def image_name(self, row: Row, column: str) -> str:
        """Names have no suffix."""
        return f"{super().image_name(row, column)}.jpg"


class Grouped(Listed):
    """Pairs that several rows of a table make together: fields of the n-th get ``_n`` behind. In Parquet one does."""

    together: ClassVar[int] = 2

    def columns(self) -> Sequence[str]:
        return ()

    def rows(self, subset: str) -> Iterator[Row]:
        """As `Reader.rows`. Raises `WrongUse` where the last rows are too few."""
        rows = super().rows(subset)
        together = 1 if subset in self.splits and self.parquet.get(subset) else self.together
        for number, part in enumerate(iter(lambda: [*islice(rows, together)], [])):
            if len(part) < together:
                raise WrongUse(f"{part[0].where}: {len(part)} of the {together} rows of an example; {REFETCH}")
            fields = {f"{name}_{at}": value for at, row in enumerate(part) for name, value in row.fields.items()}
            yield part[0] if together == 1 else replace(part[0], number=str(number), fields=fields)


class MmvpVlm(Grouped):
    """Pairs that CLIP takes for alike, 15 of each of nine patterns (Tong et al., 2024). Accuracy: the image score.

    Texts get "a photo of " before them, as in the released code.
    """

    name, title = "mmvp-vlm", "MMVP-VLM (2024)"
    citation, licence = "https://arxiv.org/abs/2401.06209", "MIT"
    counts: ClassVar = {"test": 135}
    expects = "Questions.csv (number, pattern, statement) and the folder 'MLLM_VLM Images'"
    obtained = "Both are in the data set MMVP/MMVP_VLM of Hugging Face"

    files: ClassVar = {"test": "Questions.csv"}
    header = ("id", "pattern", "statement")
    image_columns, caption_columns = ("id_0", "id_1"), ("statement_0", "statement_1")
    category_column = "pattern_0"

    def image_name(self, row: Row, column: str) -> str:
        """Images lie in a folder for each pattern."""
        return f"{row.text('pattern_0')}/{super().image_name(row, column)}.jpg"

    def captions(self, row: Row) -> tuple[str, str]:
        first, second = super().captions(row)
        return f"a photo of {first}", f"a photo of {second}"


class Mmvp(Grouped):
    """The same question about two images, with opposite answers (Tong et al., 2024).

    A caption is the question with an answer; models that answer get the question with its options. MMVP's accuracy,
    both images right, is the text score; that of single questions the mean of ipos2t and ineg2t. The first column is
    called ``lndex`` in the release, and rightly in copies: columns are read by their place.
    """

    name, title = "mmvp", "MMVP (2024)"
    citation, licence = "https://arxiv.org/abs/2401.06209", "MIT"
    counts: ClassVar = {"test": 150}
    expects = "Questions.csv (lndex, Question, Options, Correct Answer) and the folder 'MMVP Images' (1.jpg …)"
    obtained = "Both are in the data set MMVP/MMVP of Hugging Face"

    files: ClassVar = {"test": "Questions.csv"}
    header = ("number", "question", "options", "answer")
    image_columns = ("number_0", "number_1")
    asks = "mmvp 1"
    _LETTER = "Answer with the option's letter from the given choices directly."
    _OPTIONS = re.compile(r"\s*\(a\)\s*(.+?)\s*\(b\)\s*(.+?)\s*")

    def image_name(self, row: Row, column: str) -> str:
        """Images are called by the number of their question."""
        return f"{super().image_name(row, column)}.jpg"

    def captions(self, row: Row) -> tuple[str, str]:
        options = self._OPTIONS.fullmatch(row.text("options_0"))
        answers = [row.text(f"answer_{at}").strip() for at in (0, 1)]
        if options is None or sorted(answers) != ["(a)", "(b)"] or row.text("question_1") != row.text("question_0"):
            raise WrongUse(f"{row.where}: not a question about two images with the answers (a) and (b); {REFETCH}")
        question = row.text("question_0")
        asked = f"{question} {row.text('options_0')} {self._LETTER}"
        first, second = (
            OwnQuestion(f"{question} {option}", asked, ("a", "b"), right)
            for right, option in enumerate(options.groups())
        )
        return (first, second) if answers[0] == "(a)" else (second, first)


class MmvpCorrected(Mmvp):
    """MMVP without two pairs' answers the wrong way round: tusks (99, 100), standing or sitting (279, 280).

    Found in issue 30 of github.com/tsb0601/MMVP and issue 1018 of github.com/EvolvingLMMs-Lab/lmms-eval.
    """

    name, title = "mmvp-corrected", "MMVP (2024), answers corrected"
    _RELEASED: ClassVar = {"99": "(a)", "100": "(b)", "279": "(a)", "280": "(b)"}

    def digest_of(self, read: object) -> str:
        """As `Reader.digest_of`, with what is corrected."""
        return super().digest_of({"corrected": self._RELEASED, "read": read})

    def rows(self, subset: str) -> Iterator[Row]:
        """As `Reader.rows`. Raises `WrongUse`: an answer is not the released one, or a question is absent."""
        left = dict(self._RELEASED)
        for row in super().rows(subset):
            fields = dict(row.fields)
            for at in (0, 1):
                released, held = left.pop(str(fields[f"number_{at}"]), None), fields[f"answer_{at}"]
                if released is not None and held != released:
                    raise WrongUse(
                        f"{row.where}: the answer is {held!r}, and the release has {released!r}: this file is "
                        "another version, perhaps corrected already; read it as mmvp"
                    )
                if released is not None:
                    fields[f"answer_{at}"] = "(b)" if released == "(a)" else "(a)"
            yield replace(row, fields=fields)
        if left:
            raise WrongUse(f"{self.place}: no question {', '.join(left)}; {REFETCH}")


class NaturalBench(Grouped):
    """Two questions about two images, each with both answers (Li et al., 2024).

    A caption is a question; of one with options, the question with the option that is right for its own image. Models
    that answer get the question as released, with its request for yes, no or the letter. The published Acc, Q-Acc,
    I-Acc and G-Acc need P(yes): see `benchmarks.metrics.yes_no`.
    """

    name, title = "naturalbench", "NaturalBench (2024)"
    citation, licence = "https://arxiv.org/abs/2410.14669", "Apache-2.0"
    counts: ClassVar = {"test": 950, "train": 1900}
    metrics = ("yes-no",)
    asks = "naturalbench 1"
    expects = "the Parquet files of the split train, or test_set.json with the images that it names"
    obtained = "Parquet is in the data set BaiqiL/NaturalBench of Hugging Face"

    files: ClassVar = {"test": "test_set.json", "train": ""}
    splits = ("train",)
    header = ("Question", "Image", "Answer", "Question_Type")
    together = 4  # both images with the first question, then with the second
    image_columns = ("Image_0", "Image_1")
    _WORDS = ("Question_0", "Question_1", "Question_Type")
    _ANSWERS = ("Image_0_Question_0", "Image_1_Question_0", "Image_0_Question_1", "Image_1_Question_1")
    category_column = "Question_Type"
    _YES_NO, _LETTER = "Please answer Yes or No.", "Please output the letter corresponding to the correct option."
    _ASKED = re.compile(rf"\s*(?:{_YES_NO}|{_LETTER})\s*$")
    _OPTIONS = re.compile(r"(.+?)\s*Options?:\s*A:\s*(.+?)[;.]\s*B:\s*(.+?)[;.]?\s*", re.DOTALL)

    def rows(self, subset: str) -> Iterator[Row]:
        """As `Reader.rows`, with the fields of the Parquet files."""
        for row in super().rows(subset):
            rows = row.fields
            if "Question_Type_0" in rows:
                if any(rows[f"{name}_{number}"] != rows[f"{name}_{copy}"] for name, number, copy in self._SAME):
                    raise WrongUse(f"{row.where}: not two questions about two images; {REFETCH}")
                fields = {name: rows[f"Answer_{place}"] for place, name in enumerate(self._ANSWERS)}
                fields |= {"Image_0": rows["Image_0"], "Image_1": rows["Image_1"]}
                fields |= {"Question_0": rows["Question_0"], "Question_1": rows["Question_2"]}
                row = replace(row, fields=fields | {"Question_Type": rows["Question_Type_0"]})
            yield row

    def columns(self) -> Sequence[str]:
        return [*self._WORDS, *self._ANSWERS]

    _SAME = (("Question", 0, 1), ("Question", 2, 3), ("Image", 0, 2), ("Image", 1, 3))

    def captions(self, row: Row) -> tuple[str, str]:
        answers = tuple(row.text(field) for field in self._ANSWERS)
        asked = [self._ASKED.sub("", row.text(field).strip()) for field in self._WORDS[:2]]
        wants = self._YES_NO if answers == ("Yes", "No", "No", "Yes") else self._LETTER
        whole = [text + wants for text in asked]  # as test_set.json has it; for Parquet the released code does this
        if wants == self._YES_NO:
            return OwnQuestion(asked[0], whole[0]), OwnQuestion(asked[1], whole[1])
        options = [self._OPTIONS.fullmatch(text) for text in asked]
        if answers not in (("A", "B", "B", "A"), ("B", "A", "A", "B")) or not all(options):
            raise WrongUse(f"{row.where}: {', '.join(answers)} are not the answers of NaturalBench; {REFETCH}")
        first, second = (
            OwnQuestion(f"{option[1]} {option['AB'.index(answer) + 2]}", question, ("a", "b"), "AB".index(answer))
            for option, question, answer in zip(options, whole, answers[::3], strict=True)
            if option
        )
        return first, second
