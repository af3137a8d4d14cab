"""What benchmarks ask, for models that run elsewhere, and the scores that come back."""
