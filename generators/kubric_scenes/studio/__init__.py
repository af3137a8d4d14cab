"""Rendering: Kubric and Blender, set up once a process."""
