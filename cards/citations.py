"""What to cite: the benchmark whose construction is followed, and the sources that its samples are made from."""

from __future__ import annotations

EQBEN = """@inproceedings{wang2023eqben,
  title     = {Equivariant Similarity for Vision-Language Foundation Models},
  author    = {Wang, Tan and Lin, Kevin and Li, Linjie and Lin, Chung-Ching and Yang, Zhengyuan and Zhang, Hanwang
               and Liu, Zicheng and Wang, Lijuan},
  booktitle = {ICCV},
  year      = {2023}
}"""

GENECIS = """@inproceedings{vaze2023genecis,
  title     = {{GeneCIS}: A Benchmark for General Conditional Image Similarity},
  author    = {Vaze, Sagar and Carion, Nicolas and Misra, Ishan},
  booktitle = {CVPR},
  year      = {2023}
}"""

_CONCEPTUAL_CAPTIONS = """@inproceedings{sharma2018conceptual,
  title     = {Conceptual Captions: A Cleaned, Hypernymed, Image Alt-text Dataset For Automatic Image Captioning},
  author    = {Sharma, Piyush and Ding, Nan and Goodman, Sebastian and Soricut, Radu},
  booktitle = {ACL},
  year      = {2018}
}"""

_CONCRETENESS = """@article{brysbaert2014concreteness,
  title     = {Concreteness ratings for 40 thousand generally known {English} word lemmas},
  author    = {Brysbaert, Marc and Warriner, Amy Beth and Kuperman, Victor},
  journal   = {Behavior Research Methods},
  volume    = {46},
  number    = {3},
  pages     = {904--911},
  year      = {2014}
}"""

_VAW = """@inproceedings{pham2021vaw,
  title     = {Learning to Predict Visual Attributes in the Wild},
  author    = {Pham, Khoi and Kafle, Kushal and Lin, Zhe and Ding, Zhihong and Cohen, Scott and Tran, Quan
               and Shrivastava, Abhinav},
  booktitle = {CVPR},
  year      = {2021}
}"""

_VISUAL_GENOME = """@article{krishna2017visual,
  title     = {Visual {Genome}: Connecting Language and Vision Using Crowdsourced Dense Image Annotations},
  author    = {Krishna, Ranjay and Zhu, Yuke and Groth, Oliver and Johnson, Justin and Hata, Kenji and others},
  journal   = {International Journal of Computer Vision},
  volume    = {123},
  number    = {1},
  pages     = {32--73},
  year      = {2017}
}"""

_COCO = """@inproceedings{lin2014coco,
  title     = {{Microsoft COCO}: Common Objects in Context},
  author    = {Lin, Tsung-Yi and Maire, Michael and Belongie, Serge and Hays, James and Perona, Pietro and others},
  booktitle = {ECCV},
  year      = {2014}
}"""

_PANOPTIC = """@inproceedings{kirillov2019panoptic,
  title     = {Panoptic Segmentation},
  author    = {Kirillov, Alexander and He, Kaiming and Girshick, Ross and Rother, Carsten and Doll{\\'a}r, Piotr},
  booktitle = {CVPR},
  year      = {2019}
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
    "genecis-triplets": (
        "captions such as those of Conceptual Captions",
        "https://ai.google.com/research/ConceptualCaptions",
        f"{_CONCEPTUAL_CAPTIONS}\n\n{_CONCRETENESS}",
    ),
    "genecis-attributes": ("VAW", "https://vawdataset.com", f"{_VAW}\n\n{_VISUAL_GENOME}"),
    "genecis-objects": (
        "COCO Panoptic",
        "https://cocodataset.org/#panoptic-2018",
        f"{_COCO}\n\n{_PANOPTIC}",
    ),
}


def benchmark(kind: str) -> str:
    """BibTeX of the benchmark whose construction a kind of source follows."""
    return GENECIS if kind.startswith("genecis-") else EQBEN
