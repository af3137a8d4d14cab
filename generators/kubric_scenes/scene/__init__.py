"""Where things stand and how they are seen: models, placement, physics, camera."""
