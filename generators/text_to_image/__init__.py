"""Engines that draw a caption, behind one protocol (BiVLC, section 3.2)."""
