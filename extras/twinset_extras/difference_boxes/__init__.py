"""Where the images of a pair differ, and what is there in each (Img-Diff)."""
