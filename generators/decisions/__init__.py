"""People's decisions: what is asked, and how their answers become a table that later stages read (BiVLC, 3.1)."""
