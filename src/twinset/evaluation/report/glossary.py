"""What the figures of a report mean, in a sentence each."""

from collections.abc import Iterable

#: By what the names of figures begin with.
_MEANINGS = {
    "text": "text: each image scores higher with its own caption (BiVLC: I2T).",
    "image": "image: each caption with its own image (T2I).",
    "group": "group: both.",
    "ipos2t": "ipos2t, ineg2t: the same of image 0, of image 1 alone; tpos2i, tneg2i: of caption 0, of caption 1.",
    "group_match": "group_match: the two right pairs score higher in sum than the two wrong ones.",
    "order": "order12, order21: both captions are given to their images at once, in either order of the captions.",
    "text_detection": "text_detection, image_detection: captions, and images, that are rightly told natural or "
    "synthetic.",
    "accuracy": "accuracy: the right caption scores higher; of a statement, the score is on the right side of the "
    "model's threshold.",
    "p_c": "p_c: the caption is above the model's threshold, p_f: the wrong one is not; acc, min: their mean and the "
    "lesser (VALSE).",
    "vqa_acc": "vqa_acc, q_acc, i_acc, g_acc: answers, questions, images and groups that are right where yes is a "
    "score above the threshold (NaturalBench).",
    "mean_equivariance": "mean_equivariance_text, mean_equivariance_image: distance from equivariance, 0 at best, in "
    "units of the scores.",
    "recall@": "recall@K: a target is among the K entries that score highest.",
    "map": "map: mean average precision of all targets, in the first K entries.",
    "all_targets": "all_targets: every target scores higher than every other entry.",
    "pair_accuracy": "pair_accuracy, set_accuracy: the captions of two images that differ in one preposition, of all "
    "four of the same objects, come first.",
    "mean_kendall": "mean_kendall, mean_spearman: rank correlation with people's order, -1 to 1; overlap@5: how many "
    "of people's first five are among the model's.",
    "grounding": "grounding@S: the boundary is found within S seconds; grounding: the mean over all S.",
}
_WHOLE = ("text", "image", "group", "accuracy")  # names that others begin with


def explained(figures: Iterable[str]) -> str:
    """What some figures mean, each once; nothing of those that installed packages bring."""
    names = [*figures]
    return " ".join(
        words
        for begin, words in _MEANINGS.items()
        if any(name == begin if begin in _WHOLE else name.startswith(begin) for name in names)
    )
