CREATE TABLE IF NOT EXISTS answers (
    stage TEXT NOT NULL, task TEXT NOT NULL, binding TEXT NOT NULL, annotator TEXT NOT NULL,
    answer TEXT NOT NULL, reason TEXT NOT NULL, shown TEXT NOT NULL, position INTEGER NOT NULL,
    seconds REAL NOT NULL, at TEXT NOT NULL,
    PRIMARY KEY (stage, task, binding, annotator)
);
CREATE TABLE IF NOT EXISTS undone (
    stage TEXT NOT NULL, task TEXT NOT NULL, binding TEXT NOT NULL, annotator TEXT NOT NULL,
    answer TEXT NOT NULL, reason TEXT NOT NULL, shown TEXT NOT NULL, position INTEGER NOT NULL,
    seconds REAL NOT NULL, at TEXT NOT NULL,
    undone_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS leases (
    stage TEXT NOT NULL, task TEXT NOT NULL, binding TEXT NOT NULL, annotator TEXT NOT NULL, until REAL NOT NULL,
    PRIMARY KEY (stage, task, binding, annotator)
);
CREATE INDEX IF NOT EXISTS by_annotator ON answers (annotator, stage);
