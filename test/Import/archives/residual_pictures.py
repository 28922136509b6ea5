# RUN: %check-archive %s
# RUN: %check-archive --steps 12 %s
"""A small ResNet: batch norms in training, a strided first convolution, max pooling with overlap, adaptive average pooling."""
import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(width)
        self.short = None
        if stride != 1 or channels != width:
            self.short = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        h = F.relu(self.norm1(self.conv1(x)))
        h = self.norm2(self.conv2(h))
        return F.relu(h + (x if self.short is None else self.short(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        self.layers = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2))
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.head = nn.Linear(16, 10)

    def forward(self, x, y):
        h = self.layers(self.stem(x))
        return F.cross_entropy(self.head(torch.flatten(self.pool(h), 1)), y)


def make():
    return Model()


def inputs():
    return {"x": torch.randn(4, 3, 32, 32), "y": torch.randint(0, 10, (4,))}
