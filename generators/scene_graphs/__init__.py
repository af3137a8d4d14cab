"""Scene graphs of captions (GeneCIS, section 5.2): relations "subject, predicate, object", as Parquet."""
