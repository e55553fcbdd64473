"""A sweep at the edge of stability, made by hand."""

import pandas as pd

CONSTANT = {"schedule": "constant", "warmup": 0.0}


class Made:
    """Two rates, two seeds; λ₁ climbs linearly to 1.05 and 0.95 times 2/rate, the limit of plain descent, and stays."""

    def __init__(self, **options):
        rows, probes = [], []
        for rate in (0.1, 0.2):
            for seed, share in ((1, 1.05), (2, 0.95)):
                run_id = f"{rate}-{seed}"
                rows.append({"run_id": run_id, "config_id": str(rate), "optimizer": "sgd", "learning_rate": rate, "updates": 600,
                             "peak_learning_rate": rate, "sgd_noise_scale": 1.0, "sgd.momentum": 0.0, **CONSTANT, **options})  # fmt: skip
                limit = 2 / rate
                for update in range(100, 601, 100):
                    value = share * limit * min(1.0, update / 400)
                    probes.append({"run_id": run_id, "checkpoint": f"u{update:06d}", "probe": "top_eigenvalues", "quantity": "lambda",
                                   "index": 0, "update": update, "value": value, "uncertainty": 0.01, "status": "ok",
                                   "study": True})  # fmt: skip
                probes.append({**probes[-1], "checkpoint": "end", "value": 1e9})
        self.runs, self.probes = pd.DataFrame(rows), pd.DataFrame(probes)

    def curve(self, run_id, table="train"):
        return pd.DataFrame({"update": [1, 2], "loss": [1.0, 0.5]})
