# RUN: %check-archive %s
# RUN: %check-archive --steps 12 %s
"""A small U-Net: pooling down, transposed convolutions and interpolation up, group and instance norms, reflected borders, dilation."""
import torch
from torch import nn
from torch.nn import functional as F


class Double(nn.Module):
    def __init__(self, channels, width, norm):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(channels, width, 3, padding=1, padding_mode="reflect"), norm, nn.LeakyReLU(0.1),
                                  nn.Conv2d(width, width, 3, padding=2, dilation=2), nn.GroupNorm(2, width), nn.SiLU())

    def forward(self, x):
        return self.body(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Double(3, 8, nn.BatchNorm2d(8)), Double(8, 16, nn.InstanceNorm2d(16, affine=True))
        self.third = Double(16, 16, nn.GroupNorm(4, 16))
        self.up = nn.ConvTranspose2d(16, 8, 3, stride=2, padding=1, output_padding=1)
        self.join2, self.join1 = Double(24, 8, nn.BatchNorm2d(8, affine=False)), Double(16, 8, nn.BatchNorm2d(8, track_running_stats=False))
        self.shuffle = nn.Sequential(nn.Conv2d(8, 16, 1), nn.PixelShuffle(2), nn.Conv2d(4, 5, 2, stride=2))

    def forward(self, x, y):
        first = self.first(x)
        second = self.second(F.max_pool2d(first, 2))
        third = self.third(F.avg_pool2d(second, 3, 2, 1))
        h = self.join2(torch.cat([second, self.up(third)], 1))
        h = self.join1(torch.cat([first, F.interpolate(h, scale_factor=2.0, mode="bilinear", align_corners=False)], 1))
        h = h + F.interpolate(third.mean(1, keepdim=True), scale_factor=4.0)
        return F.cross_entropy(self.shuffle(h), y)


def make():
    return Model()


def inputs():
    return {"x": torch.randn(2, 3, 16, 16), "y": torch.randint(0, 5, (2, 16, 16))}
