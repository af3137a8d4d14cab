CREATE TABLE IF NOT EXISTS answers (
    digest TEXT PRIMARY KEY, model TEXT NOT NULL, text TEXT NOT NULL, finish TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS tally (
    model TEXT NOT NULL, parameters TEXT NOT NULL, answers INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, PRIMARY KEY (model, parameters)
) WITHOUT ROWID;
