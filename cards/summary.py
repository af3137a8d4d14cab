"""What a finished subset holds, in numbers: the funnel from its index and what describes its captions and images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class IndexSummary:
    """The funnel of a subset: planned = kept + rejected.

    rejected: by reason. by_filter: by the filter that rejected (``generator`` where nothing was made), then reason.
    kept_by_split: samples a split. tars: samples a tar, by path below the subset. bytes: of all tars. images: roles
    that some sample has a picture for.
    """

    planned: int
    kept: int
    rejected: Mapping[str, int]
    by_filter: Mapping[str, Mapping[str, int]]
    kept_by_split: Mapping[str, int]
    shards: int
    tars: Mapping[str, int]
    bytes: int
    images: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WordUse:
    """A word and the pairs in which it stands in caption 0 alone, caption 1 alone, or in either."""

    word: str
    only0: int
    only1: int
    either: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a researcher should know before trusting a score.

    caption_words: captions by their number of words. group_pairs: groups (videos) by their number of pairs.
    top_groups_share: share (0-1) of the pairs that the largest tenth of the groups hold.
    frequent: the words in most pairs. lopsided: the words that stand on one side more often than chance explains
    (`cards.word_balance`), so that a model could guess the side without looking. longer0: share of pairs whose caption
    0 has more words than caption 1.
    distinct_captions, distinct_images: over both sides.
    sampled: pairs whose images were looked at, evenly spread; image_sizes: these by (width, height) of image 0;
    changes: these by what changes; earlier0: share of these whose image 0 comes first in time, None without time.
    """

    caption_words: Mapping[int, int]
    group_pairs: Mapping[int, int]
    top_groups_share: float
    frequent: tuple[WordUse, ...]
    lopsided: tuple[WordUse, ...]
    longer0: float
    distinct_captions: int
    distinct_images: int
    sampled: int
    image_sizes: Mapping[tuple[int, int], int]
    changes: Mapping[str, int]
    earlier0: float | None


@dataclass(frozen=True, slots=True)
class TripletStatistics:
    """What a researcher should know of triplets before training on them.

    condition_words: triplets by the words of their condition. conditions: how many different ones; frequent: those of
    most triplets; top_conditions_share: share (0-1) of the triplets that the hundredth of the conditions with most has.
    image_triplets: images by the number of triplets that they are reference or target of; top_images_share: share of
    these places that the tenth of the images with most holds. distinct_images: with distractors; distinct_captions.
    said_of_reference: share of triplets whose condition ends with a word of the reference's caption. same_image:
    triplets with one image as reference and target; distractor_again: with one of these as distractor, None without.
    sampled: triplets whose images were looked at, evenly spread; image_sizes: these by (width, height) of the target.
    """

    condition_words: Mapping[int, int]
    conditions: int
    frequent: Mapping[str, int]
    top_conditions_share: float
    image_triplets: Mapping[int, int]
    top_images_share: float
    distinct_images: int
    distinct_captions: int
    said_of_reference: float
    same_image: int
    distractor_again: int | None
    sampled: int
    image_sizes: Mapping[tuple[int, int], int]


@dataclass(frozen=True, slots=True)
class TemplateStatistics:
    """What a researcher should know of templates before trusting a score.

    condition_words, conditions, frequent: as `TripletStatistics` has them. galleries: templates by the number of images
    in their gallery, the target included. image_templates: images by the number of templates that they are in.
    distinct_images. distracting_targets: share (0-1) of the templates whose target is a distractor of another template.
    sampled: templates whose images were looked at, evenly spread; image_sizes: these by (width, height) of the target;
    types: these by the type of their attribute, none for templates about objects.
    """

    condition_words: Mapping[int, int]
    conditions: int
    frequent: Mapping[str, int]
    galleries: Mapping[int, int]
    image_templates: Mapping[int, int]
    distinct_images: int
    distracting_targets: float
    sampled: int
    image_sizes: Mapping[tuple[int, int], int]
    types: Mapping[str, int]


AnyStatistics = Statistics | TripletStatistics | TemplateStatistics
