"""What a dataset says of itself: statistics, card, Croissant, contact sheets, page."""
