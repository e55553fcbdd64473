"""The trainings of bench/sweep.toml in PyTorch, eager or careful as in training_pytorch.py, one after the other on one thread, each
evaluated at its end on both splits. Prints one line of JSON.

    sweep_pytorch.py DATA_FOLDER MANNER BATCH:UPDATES:SEED...
"""

import json
import sys

import torch
from torch import nn

from training_pytorch import batches, layout_of, load, loss_function, make_model, make_optimizer, update

CPU = torch.device("cpu")


def split(folder, name, manner):
    images, labels = load(folder, name)
    return images.contiguous(**layout_of(manner, CPU)), labels


@torch.no_grad()
def score(model, images, labels):
    model.eval()
    logits = torch.cat([model(part) for part in images.split(1024)])
    return nn.functional.cross_entropy(logits, labels).item(), (logits.argmax(1) == labels).float().mean().item()


def train(manner, images, labels, batch, updates, seed):
    torch.manual_seed(seed)
    model = make_model("small_cnn", manner, CPU)
    optimizer, loss_of = make_optimizer(model, manner), loss_function(model, manner)
    for _, index in zip(range(updates), batches(len(images), batch)):
        update(loss_of, optimizer, images[index], labels[index])
    return model


def main():
    folder, manner, runs = sys.argv[1], sys.argv[2], [tuple(map(int, run.split(":"))) for run in sys.argv[3:]]
    torch.set_num_threads(1)
    images, labels = split(folder, "data_batch_1.bin", manner)
    test_images, test_labels = split(folder, "test_batch.bin", manner)
    losses = []
    for run in runs:
        model = train(manner, images, labels, *run)
        score(model, test_images, test_labels)
        losses.append(score(model, images, labels)[0])
    print(json.dumps({"runs": len(runs), "train_losses": losses, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
