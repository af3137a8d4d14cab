"""What captions say of photos, under any name, and how much they leave out."""
