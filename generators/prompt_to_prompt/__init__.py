"""Pairs drawn by prompt-to-prompt: image editing with cross-attention control (Hertz et al. 2022, arXiv 2208.01626).

Two captions that differ in little are drawn from one noise, and while the second is drawn its attention is partly
replaced by that of the first, so that layout and what is not named differently stay. ``source`` makes EQ-SD of it,
``vocabulary`` its captions, ``pipeline`` the pictures.
"""
