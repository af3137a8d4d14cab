"""GeneCIS's four tasks as retrieval templates, from labelled objects (VAW) and scenes (COCO Panoptic)."""
