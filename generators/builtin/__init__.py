"""Everything that twinset makes itself: pictures, videos, assets, and a small model."""
