"""mlp.py - a multilayer perceptron that classifies vectors.

The smallest thing one would train: three linear layers with ReLU.  forward(x, y) returns the mean cross-entropy of
the labels y.
"""

from dataclasses import dataclass

from torch import nn
from torch.nn import functional as F


@dataclass
class MLPConfig:
    inputs: int = 20
    hidden: int = 48
    classes: int = 5


SIZES = {
    "tiny": MLPConfig(),
    "small": MLPConfig(inputs=784, hidden=512, classes=10),
}


class MLPLogits(nn.Module):
    """forward(x) returns the logits."""

    def __init__(self, config: MLPConfig):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(config.inputs, config.hidden), nn.ReLU(),
                                  nn.Linear(config.hidden, config.hidden), nn.ReLU(),
                                  nn.Linear(config.hidden, config.classes))

    def forward(self, x):
        return self.body(x)


class MLP(MLPLogits):
    def forward(self, x, y):
        return F.cross_entropy(self.body(x), y)
