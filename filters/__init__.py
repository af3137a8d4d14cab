"""What is kept: one module a filter, which holds its settings, its reasons and its work."""

KINDS = {
    "blank": "filters.blank:Blank",
    "directional-similarity": "filters.directional_similarity:DirectionalSimilarity",
    "equal-captions": "filters.equal_captions:EqualCaptions",
    "equal-lemmas": "filters.equal_lemmas:EqualLemmas",
    "faces": "filters.faces:Faces",
    "motion-words": "filters.motion_words:MotionWords",
    "near-identical": "filters.near_identical:NearIdentical",
    "scene-cut": "filters.scene_cut:SceneCut",
    "true-of-both": "filters.true_of_both:TrueOfBoth",
}
