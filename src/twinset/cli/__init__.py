"""The ``twinset`` command line: words, progress bars, exit codes."""
