"""The engine, plain Python: plans, shards, receipts, resume, audit."""
