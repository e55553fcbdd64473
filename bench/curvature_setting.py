"""The network and examples that `make bench-curvature` measures: a CIFAR ResNet-20 (269,722 parameters) after 60 updates on 1,000
synthetic images of 10 weak classes. Written once as HDF5 in Basin's parameter names, so that every tool sees the same bits.
"""

import pathlib
import sys

import h5py
import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, channels, out, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, out, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(out)
        self.stride, self.new = stride, out - channels

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        if self.new or self.stride > 1:
            s = self.stride
            x = F.pad(x[:, :, ::s, ::s], (0, 0, 0, 0, self.new // 2, self.new - self.new // 2))
        return F.relu(y + x)


class ResNet20(nn.Module):
    """Option-A shortcuts; state_dict() has Basin's names."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(16)
        channels = 16
        for stage in (1, 2, 3):
            out = 16 * 2 ** (stage - 1)
            blocks = {}
            for block in (1, 2, 3):
                blocks[f"block{block}"] = Block(channels, out, 2 if stage > 1 and block == 1 else 1)
                channels = out
            setattr(self, f"stage{stage}", nn.ModuleDict(blocks))
        self.fc = nn.Linear(channels, 10)

    def forward(self, x):
        x = F.relu(self.norm1(self.conv1(x)))
        for stage in (self.stage1, self.stage2, self.stage3):
            for block in stage.values():
                x = block(x)
        return self.fc(x.mean((2, 3)))


def examples(n=1000, seed=0):
    g = torch.Generator().manual_seed(seed)
    prototypes = F.interpolate(torch.randn(10, 3, 8, 8, generator=g), size=32, mode="bilinear")
    labels = torch.randint(0, 10, (n,), generator=g)
    images = 0.6 * prototypes[labels] + torch.randn(n, 3, 32, 32, generator=g)
    redrawn = torch.rand(n, generator=g) < 0.1
    return images, torch.where(redrawn, torch.randint(0, 10, (n,), generator=g), labels)


def trained(images, labels, steps=60):
    torch.manual_seed(0)
    model = ResNet20()
    for module in model.modules():
        if isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.kaiming_normal_(module.weight)
    model.train()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    g = torch.Generator().manual_seed(1)
    order = torch.empty(0, dtype=torch.long)
    for _ in range(steps):
        if len(order) == 0:
            order = torch.randperm(len(images), generator=g)
        batch, order = order[:125], order[125:]
        optimizer.zero_grad()
        F.cross_entropy(model(images[batch]), labels[batch]).backward()
        optimizer.step()
    return model.eval()


def write(path):
    images, labels = examples()
    model = trained(images, labels)
    parameters = dict(model.named_parameters())
    with h5py.File(path, "w") as file:
        file["images"], file["labels"] = images.numpy(), labels.numpy()
        for name, tensor in model.state_dict().items():
            if name.endswith("num_batches_tracked"):
                continue
            file[("model/" if name in parameters else "buffers/") + name] = tensor.numpy()


def load(path, n):
    """Model in eval mode, the first n images and labels."""
    model = ResNet20()
    state = model.state_dict()
    with h5py.File(path) as file:
        for folder in ("model", "buffers"):
            for name, data in file[folder].items():
                state[name] = torch.from_numpy(data[()])
        images, labels = torch.from_numpy(file["images"][:n]), torch.from_numpy(file["labels"][:n])
    model.load_state_dict(state)
    return model.eval(), images, labels


if __name__ == "__main__":
    target = pathlib.Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    write(target)
