"""Answers as files of other tools: Parquet, Label Studio's JSON, a CSV as crowdsourcing platforms give it."""
