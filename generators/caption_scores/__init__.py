"""How natural captions and their negatives read to language models, and how alike they are to CLIP (BiVLC, App. B)."""
