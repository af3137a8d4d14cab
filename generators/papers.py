"""The benchmarks whose procedure several sources follow."""

from twinset.contracts.references import Reference, bibtex

EQBEN = Reference("EqBen", "https://arxiv.org/abs/2303.14465", bibtex("wang2023eqben"))

GENECIS = Reference("GeneCIS", "https://arxiv.org/abs/2306.07969", bibtex("vaze2023genecis"))

BIVLC = Reference("BiVLC", "https://arxiv.org/abs/2406.09952", bibtex("miranda2024bivlc"))
