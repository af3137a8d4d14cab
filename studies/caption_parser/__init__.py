"""Makes `en_captions_sm`, the spaCy pipeline that comes with twinset: ``python -m studies.caption_parser --help``."""
