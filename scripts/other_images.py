#!/usr/bin/env python3
"""Images of CIFAR-10's training set that the studies at the same training loss (docs/matched-loss.md) have not seen: 5,000 to train on and
10,000 to test on.

    .venv/bin/python scripts/other_images.py datasets/cifar10 datasets/cifar10-other

These studies hold out the images whose SHA-256, as a fraction, is below 0.2 (`data.validation = 0.2`, by which rates were chosen), train
on the next 5,000 in the order of hashes (`data.train_examples = 5000`) and test on the official test images. Here come the 5,000 after
these and the 10,000 after those (docs/data.md has the order), as .npy files for `data.set = "arrays"`.
"""

import hashlib
import pathlib
import sys

import numpy as np

HELD_OUT, SEEN, TRAIN, TEST = 0.2, 5000, 5000, 10000


def training_set(folder):
    files = sorted(folder.glob("**/data_batch_?.bin"))
    if len(files) != 5:
        sys.exit(f"{folder}: {len(files)} files data_batch_?.bin where CIFAR-10 has five")
    rows = np.concatenate([np.fromfile(path, np.uint8).reshape(-1, 3073) for path in files])
    return rows[:, 1:], rows[:, 0]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    pixels, labels = training_set(pathlib.Path(sys.argv[1]))
    held_out = [int.from_bytes(hashlib.sha256(image.tobytes()).digest()[:8], "big") / 2**64 < HELD_OUT for image in pixels]
    order = [hashlib.sha256(image.tobytes() + bytes([label])).digest() for image, label in zip(pixels, labels)]
    rest = sorted(np.flatnonzero(~np.array(held_out)), key=lambda i: order[i])[SEEN:]
    out = pathlib.Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    for name, chosen in (("train", rest[:TRAIN]), ("test", rest[TRAIN : TRAIN + TEST])):
        np.save(out / f"{name}_inputs.npy", pixels[chosen].reshape(-1, 3, 32, 32))
        np.save(out / f"{name}_targets.npy", labels[chosen].astype(np.int64))


if __name__ == "__main__":
    main()
