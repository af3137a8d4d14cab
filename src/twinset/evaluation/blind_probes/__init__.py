"""What a benchmark gives away: guesses that look at the captions alone, or at the images alone."""
