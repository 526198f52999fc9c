"""The networks of mnar in PyTorch. Fields are named as in mnar; images have channels first."""

import math
import sys

import torch.nn.functional as F
from torch import nn


class Mlp(nn.Module):
    """Dense layers with rectifiers between them. The input is flattened from `channels` x `pixels`."""

    def __init__(self, pixels, channels, hidden, classes):
        super().__init__()
        widths = [pixels * channels, *hidden, classes]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in zip(widths, widths[1:]))
        self.channels = channels

    def forward(self, x):
        x = x.flatten(1)
        for layer in self.layers[:-1]:
            x = F.relu(layer(x), inplace=True)
        return self.layers[-1](x)


class MnistCnn(nn.Module):
    def __init__(self, side, channels, classes):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(channels, 6, 5), nn.Conv2d(6, 16, 5)
        self.head = Mlp(math.prod(((s - 4) // 2 - 4) // 2 for s in side), 16, [120, 84], classes)

    def forward(self, x):
        x = F.relu(F.max_pool2d(self.conv1(x), 2), inplace=True)
        x = F.relu(F.max_pool2d(self.conv2(x), 2), inplace=True)
        return self.head(x)


class NormCnn(nn.Module):
    """3x3 (or 3x3x3) convolutions, each with batch norm and a rectifier, some with pooling: MedMnistCnn and Cnn3d."""

    def __init__(self, side, channels, layers, hidden, classes):
        super().__init__()
        flat = len(side) == 2
        conv, norm = (nn.Conv2d, nn.BatchNorm2d) if flat else (nn.Conv3d, nn.BatchNorm3d)
        self.pool = F.max_pool2d if flat else F.max_pool3d
        self.convs, self.norms, self.pooled = nn.ModuleList(), nn.ModuleList(), [pooled for *_, pooled in layers]
        for out, padding, pooled in layers:
            self.convs.append(conv(channels, out, 3, padding=padding))
            self.norms.append(norm(out))
            side, channels = [(s + 2 * padding - 2) // (2 if pooled else 1) for s in side], out
        self.head = Mlp(math.prod(side), channels, hidden, classes)

    def forward(self, x):
        for conv, norm, pooled in zip(self.convs, self.norms, self.pooled):
            x = F.relu(norm(conv(x)), inplace=True)
            x = self.pool(x, 2) if pooled else x
        return self.head(x)


class Block(nn.Module):
    def __init__(self, channels, out, stride, first):
        super().__init__()
        self.norm1 = nn.BatchNorm2d(channels, momentum=0.001)
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(out, momentum=0.001)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.shortcut = nn.Conv2d(channels, out, 1, stride, bias=False) if channels != out else None
        self.activate_shortcut = first

    def forward(self, x):
        inner = F.leaky_relu(self.norm1(x), 0.1, inplace=True)
        x = inner if self.activate_shortcut else x
        x = self.shortcut(x) if self.shortcut is not None else x
        return self.conv2(F.leaky_relu(self.norm2(self.conv1(inner)), 0.1, inplace=True)) + x


class WideResNet(nn.Module):
    def __init__(self, channels, depth, width, classes):
        super().__init__()
        self.stem = nn.Conv2d(channels, 16, 3, 1, 1, bias=False)
        blocks, now = [], 16
        for group, out in enumerate([16 * width, 32 * width, 64 * width]):
            for i in range((depth - 4) // 6):
                blocks.append(Block(now, out, 2 if group > 0 and i == 0 else 1, group == i == 0))
                now = out
        self.blocks = nn.ModuleList(blocks)
        self.norm, self.head = nn.BatchNorm2d(now, momentum=0.001), nn.Linear(now, classes)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(F.leaky_relu(self.norm(x), 0.1, inplace=True).mean((2, 3)))


def build(architecture, shape, classes):
    """Builds the network described by `architecture` and `input` in model.json, with random weights."""
    image = shape.get("image") or {"depth": 1, "height": 1, "width": shape["row"], "channels": 1}
    volume, channels = [image[axis] for axis in ("depth", "height", "width")], image["channels"]
    match architecture["name"].replace("-", ""):
        case "linear" | "mlp":
            return Mlp(math.prod(volume), channels, architecture.get("hidden", []), classes)
        case "mnistcnn":
            return MnistCnn(volume[1:], channels, classes)
        case "medmnistcnn":
            layers = [(16, 0, False), (16, 0, True), (64, 0, False), (64, 0, False), (64, 1, True)]
            return NormCnn(volume[1:], channels, layers, [128, 128], classes)
        case "cnn3d":
            return NormCnn(volume, channels, [(16, 1, True), (32, 1, True), (64, 1, True)], [64], classes)
        case "wideresnet":
            return WideResNet(channels, architecture["depth"], architecture["width"], classes)
        case name:
            sys.exit(f"model.json names a network this script does not know: {name}")
