"""What to cite: the benchmark whose construction is followed, and the sources that its pairs are made from."""

from __future__ import annotations

EQBEN = """@inproceedings{wang2023eqben,
  title     = {Equivariant Similarity for Vision-Language Foundation Models},
  author    = {Wang, Tan and Lin, Kevin and Li, Linjie and Lin, Chung-Ching and Yang, Zhengyuan and Zhang, Hanwang
               and Liu, Zicheng and Wang, Lijuan},
  booktitle = {ICCV},
  year      = {2023}
}"""

#: Title, address and BibTeX by kind of source.
SOURCES = {
    "action-genome": (
        "Action Genome",
        "https://www.actiongenome.org",
        """@inproceedings{ji2020actiongenome,
  title     = {Action Genome: Actions as Compositions of Spatio-temporal Scene Graphs},
  author    = {Ji, Jingwei and Krishna, Ranjay and Fei-Fei, Li and Niebles, Juan Carlos},
  booktitle = {CVPR},
  year      = {2020}
}""",
    ),
    "gebc": (
        "Kinetics-GEB+ (GEBC)",
        "https://github.com/showlab/geb-plus",
        """@inproceedings{wang2022gebplus,
  title     = {{GEB+}: A Benchmark for Generic Event Boundary Captioning, Grounding and Retrieval},
  author    = {Wang, Yuxuan and Gao, Difei and Yu, Licheng and Lei, Weixian and Feiszli, Matt and Shou, Mike Zheng},
  booktitle = {ECCV},
  year      = {2022}
}""",
    ),
    "youcook2": (
        "YouCook2",
        "http://youcook2.eecs.umich.edu",
        """@inproceedings{zhou2018youcook2,
  title     = {Towards Automatic Learning of Procedures from Web Instructional Videos},
  author    = {Zhou, Luowei and Xu, Chenliang and Corso, Jason J.},
  booktitle = {AAAI},
  year      = {2018}
}""",
    ),
    "kubric": (
        "Kubric",
        "https://github.com/google-research/kubric",
        """@inproceedings{greff2022kubric,
  title     = {Kubric: A Scalable Dataset Generator},
  author    = {Greff, Klaus and Belletti, Francois and Beyer, Lucas and others},
  booktitle = {CVPR},
  year      = {2022}
}""",
    ),
    "stable-diffusion": (
        "prompt-to-prompt",
        "https://arxiv.org/abs/2208.01626",
        """@inproceedings{hertz2023prompt,
  title     = {Prompt-to-Prompt Image Editing with Cross-Attention Control},
  author    = {Hertz, Amir and Mokady, Ron and Tenenbaum, Jay and Aberman, Kfir and Pritch, Yael and Cohen-Or, Daniel},
  booktitle = {ICLR},
  year      = {2023}
}

@inproceedings{rombach2022high,
  title     = {High-Resolution Image Synthesis with Latent Diffusion Models},
  author    = {Rombach, Robin and Blattmann, Andreas and Lorenz, Dominik and Esser, Patrick and Ommer, Bj{\\"o}rn},
  booktitle = {CVPR},
  year      = {2022}
}""",
    ),
}
