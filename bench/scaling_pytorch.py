"""One rank of small_cnn's training in PyTorch by DistributedDataParallel over Gloo, for bench/scaling.py; prints its images per second, all
ranks together. Its place is in the environment, as torchrun has it.

    scaling_pytorch.py BATCH SECONDS DATA_FOLDER
"""

import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from training_pytorch import WARM_UP, batches, layout_of, load, loss_function, make_model, make_optimizer, update

MANNER, CPU = "careful", torch.device("cpu")


def main():
    batch, seconds, folder = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
    rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    torch.manual_seed(1)  # the same weights and the same batches on every rank
    images, labels = load(folder, "cifar10-5k/data_batch_1.bin")
    images = images.contiguous(**layout_of(MANNER, CPU))
    model = make_model("small_cnn", MANNER, CPU)
    dist.init_process_group("gloo")
    if ranks > 1:
        model = DistributedDataParallel(model)
    optimizer, loss_of = make_optimizer(model, MANNER), loss_function(model, MANNER)
    updates, start, going = 0, 0.0, torch.ones(())
    for index in batches(len(images), batch):
        mine = index[rank::ranks]
        update(loss_of, optimizer, images[mine], labels[mine])
        updates += 1
        if updates == WARM_UP:
            start = time.perf_counter()
        elapsed = time.perf_counter() - start
        going.fill_(updates <= WARM_UP or elapsed < seconds)
        dist.broadcast(going, 0)
        if not going.item():
            break
    print((updates - WARM_UP) * batch / elapsed)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
