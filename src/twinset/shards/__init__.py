"""How samples lie on disk or in a bucket: sample types, deterministic tar writer, reader, exporters."""
