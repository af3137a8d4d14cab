"""The benchmarks whose procedure several sources follow."""

from twinset.manifests.source import Reference

EQBEN = Reference(
    "EqBen",
    "https://arxiv.org/abs/2303.14465",
    """@inproceedings{wang2023eqben,
  title     = {Equivariant Similarity for Vision-Language Foundation Models},
  author    = {Wang, Tan and Lin, Kevin and Li, Linjie and Lin, Chung-Ching and Yang, Zhengyuan and Zhang, Hanwang
               and Liu, Zicheng and Wang, Lijuan},
  booktitle = {ICCV},
  year      = {2023}
}""",
)

GENECIS = Reference(
    "GeneCIS",
    "https://arxiv.org/abs/2306.07969",
    """@inproceedings{vaze2023genecis,
  title     = {{GeneCIS}: A Benchmark for General Conditional Image Similarity},
  author    = {Vaze, Sagar and Carion, Nicolas and Misra, Ishan},
  booktitle = {CVPR},
  year      = {2023}
}""",
)

BIVLC = Reference(
    "BiVLC",
    "https://arxiv.org/abs/2406.09952",
    """@inproceedings{miranda2024bivlc,
  title     = {{BiVLC}: Extending Vision-Language Compositionality Evaluation with Text-to-Image Retrieval},
  author    = {Miranda, Imanol and Salaberria, Ander and Agirre, Eneko and Azkune, Gorka},
  booktitle = {NeurIPS Datasets and Benchmarks},
  year      = {2024}
}""",
)
