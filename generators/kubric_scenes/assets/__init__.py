"""The assets that scenes are made of: their manifest, archives and meshes, none of them trusted."""
