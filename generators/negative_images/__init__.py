"""Images of negative captions, drawn by text-to-image engines (BiVLC, section 3.2)."""
