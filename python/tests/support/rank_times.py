"""scaling.h5 of a machine whose times are known."""

import h5py
import numpy as np


def write_scaling(path, cost, optimizers=("sgd",), ranks=(1, 2, 4), rounds=3, wobble=0.0, strong=2048, weak=512):
    """`cost`: an UpdateCost. `wobble`: each round is slower than the first by this share of it, for all ranks alike."""
    updates, products, sums = [], [], []
    for turn in range(1, rounds + 1):
        slow = 1 + wobble * (turn - 1)
        for n in ranks:
            for optimizer in optimizers:
                for scaling, batch in (("strong", strong), ("weak", weak * n), ("small", 16 * n)):
                    took = slow * cost.seconds(batch, n)
                    shared = (cost.number, cost.bytes, 0.25, 1.1 * 2 * (n - 1) * cost.bytes) if n > 1 else (np.nan,) * 4
                    updates.append((optimizer, n, scaling, batch, turn, took, batch / took, 5, *shared))
            products.append((n, turn, 100, slow * 0.8 / n, 5))
            sums += [(8**k, n, turn, 2 * (n - 1) * (cost.latency + 8**k / n / cost.bandwidth), 9) for k in range(3, 9) if n > 1]
    tables = {
        "updates": (updates, "optimizer ranks scaling batch_size round update_seconds images_per_second timed rank_sums_per_update "
                    "rank_bytes_per_update rank_wait_share wire_bytes_per_update"),
        "products": (products, "ranks round examples product_seconds timed"),
        "sums": (sums, "bytes ranks round sum_seconds timed"),
    }  # fmt: skip
    with h5py.File(path, "w") as file:
        file.attrs.update(schema_name="basin/scaling", schema_version="1.3.0", threads=1)
        file.attrs["hosts"] = ["one"] * max(ranks)
        file.create_group("provenance").attrs.update(started_utc="2026-11-27T11:00:00Z", cpu="a processor")
        for name, (rows, columns) in tables.items():
            for column, values in zip(columns.split(), zip(*rows, strict=True), strict=True):
                file[f"{name}/{column}"] = list(values)
    return path
