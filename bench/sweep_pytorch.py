"""The trainings of bench/sweep.toml in PyTorch eager as it comes, one after the other on one thread, each evaluated at its end on both
splits. Prints one line of JSON.

    sweep_pytorch.py DATA_FOLDER BATCH:UPDATES:SEED...
"""

import json
import pathlib
import sys

import torch
from torch import nn

from training_pytorch import batches, load, small_cnn, update


@torch.no_grad()
def score(model, images, labels):
    model.eval()
    logits = torch.cat([model(part) for part in images.split(1024)])
    return nn.functional.cross_entropy(logits, labels).item(), (logits.argmax(1) == labels).float().mean().item()


def train(images, labels, batch, updates, seed):
    torch.manual_seed(seed)
    model = small_cnn()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    for _, index in zip(range(updates), batches(len(images), batch)):
        update(model, optimizer, images[index], labels[index])
    return model


def main():
    folder, runs = pathlib.Path(sys.argv[1]), [tuple(map(int, run.split(":"))) for run in sys.argv[2:]]
    torch.set_num_threads(1)
    images, labels = load(folder, "data_batch_1.bin")
    test_images, test_labels = load(folder, "test_batch.bin")
    losses = []
    for run in runs:
        model = train(images, labels, *run)
        score(model, test_images, test_labels)
        losses.append(score(model, images, labels)[0])
    print(json.dumps({"runs": len(runs), "train_losses": losses, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
