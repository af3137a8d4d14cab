"""The Combiner of Baldrati et al. (2022), which GeneCIS trains on mined triplets (5.1, appendix D), as a network."""

from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

from twinset.contracts.errors import WrongUse
from twinset.models.encoders.checkpoints import COMBINER_PARTS, fit, read_weights


class CombinerNetwork(nn.Module):
    """Combines features of an image and of a text into those of a query; names of layers are the published ones.

    Args:
        features: numbers of a feature. projection, hidden: widths of the layers.
        dropout: share of activations that are dropped in training, at four places.
    """

    def __init__(self, features: int, projection: int, hidden: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.text_projection_layer = nn.Linear(features, projection)
        self.image_projection_layer = nn.Linear(features, projection)
        self.dropout = nn.Dropout(dropout)
        self.combiner_layer = nn.Linear(2 * projection, hidden)
        self.output_layer = nn.Linear(hidden, features)
        gate = [nn.Linear(2 * projection, hidden), nn.ReLU(), nn.Dropout(dropout), nn.Linear(hidden, 1), nn.Sigmoid()]
        self.dynamic_scalar = nn.Sequential(*gate)

    def forward(self, image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        """Combined features (n, d), not normalised, of features that are not normalised either, (n, d) each."""
        # z = [drop(relu(W_t g(T))); drop(relu(W_i f(I)))]
        projected = self.text_projection_layer(text), self.image_projection_layer(image)
        read = torch.cat([self.dropout(functional.relu(part)) for part in projected], dim=-1)
        # λ = σ(MLP(z)) weights the text: so has it the released code, while the paper's (2) weights the image.
        share: torch.Tensor = self.dynamic_scalar(read)
        mixed: torch.Tensor = self.output_layer(self.dropout(functional.relu(self.combiner_layer(read))))
        # q = MLP'(z) + λ g(T) + (1 − λ) f(I)
        return mixed + share * text + (1 - share) * image


def read_combiner(path: Path) -> CombinerNetwork:
    """A Combiner with the weights of a file, on the CPU, ready for inference; raises `WrongUse` for another file."""
    weights = read_weights(path, COMBINER_PARTS)
    try:
        projection, features = weights["text_projection_layer.weight"].shape
        hidden = weights["combiner_layer.weight"].shape[0]
    except (KeyError, ValueError, IndexError) as error:
        raise WrongUse(
            f"{path}: not a Combiner ({error}); name the file that holds one, alone or under "
            f"{' or '.join(COMBINER_PARTS[:2])}"
        ) from error
    network = CombinerNetwork(features, projection, hidden)
    fit(network, weights, path, "a Combiner of these sizes")
    return network.float().eval()
