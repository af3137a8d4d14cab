"""Prefect, and only here: thin flows that schedule shards, deployments, the ``twinset`` command line."""
