"""How well people match images and captions, asked of a sample of pairs (BiVLC, section 3.2)."""
