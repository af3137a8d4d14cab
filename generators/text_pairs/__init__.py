"""Images with a caption and a negative caption (TROHN-Text; BiVLC, section 5.1)."""
