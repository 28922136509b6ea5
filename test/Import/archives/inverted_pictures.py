# RUN: %check-archive %s
# RUN: %check-archive --steps 12 %s
"""A small MobileNet: convolutions of single channels, inverted residuals, ReLU6, hard swish, squeeze and excitation, average pooling."""
import torch
from torch import nn
from torch.nn import functional as F


def unit(channels, width, window=1, stride=1, groups=1, act=nn.ReLU6):
    layers = [nn.Conv2d(channels, width, window, stride, window // 2, groups=groups, bias=False), nn.BatchNorm2d(width, momentum=0.03)]
    return nn.Sequential(*layers, *([act(inplace=True)] if act else []))


class Excite(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.down, self.up = nn.Conv2d(channels, 4, 1), nn.Conv2d(4, channels, 1)

    def forward(self, x):
        return x * F.hardsigmoid(self.up(F.relu(self.down(self.pool(x)))))


class Inverted(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        wide = 3 * channels
        self.body = nn.Sequential(unit(channels, wide), unit(wide, wide, 3, stride, wide, nn.Hardswish), Excite(wide), unit(wide, width, act=None))
        self.joins = stride == 1 and channels == width

    def forward(self, x):
        return x + self.body(x) if self.joins else self.body(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(unit(3, 8, 3, 2), Inverted(8, 8, 1), Inverted(8, 12, 2), nn.AvgPool2d(2), unit(12, 24))
        self.head = nn.Sequential(nn.Dropout(0.0), nn.Linear(24, 10))

    def forward(self, x, y):
        return F.cross_entropy(self.head(self.features(x).mean([2, 3])), y)


def make():
    return Model()


def inputs():
    return {"x": torch.randn(4, 3, 32, 32), "y": torch.randint(0, 10, (4,))}
