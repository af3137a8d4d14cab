"""Questions about the images of negative captions: which is the best, and whether it is ambiguous (BiVLC, 3.1)."""
