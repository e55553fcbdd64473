"""The tables of /names as a program of the tests' own would have them, in sweep.h5 and as JSON of a program that lists them. What
studies of the tests name is in them, and more, in another order than the alphabet's."""

import json

import numpy as np

MEMBERS = {
    "optimizers": {"sgd": "SGD", "adam": "Adam", "adamw": "AdamW", "lars": "LARS", "larc": "LARC", "lamb": "LAMB"},
    "models": {"mlp": "MLP", "small_cnn": "small CNN"},
    "data_sets": {"cifar10": "CIFAR-10", "cifar10-5k": "CIFAR-10, 5,000"},
    "probes": {
        "top_eigenvalues": "Hessian eigenvalues", "sharpness_keskar": "Keskar sharpness", "noise_scale": "gradient noise scale",
        "preconditioned_curvature": "preconditioned curvature",
    },
}  # fmt: skip
# Probe, quantity, column, label, heading; without a heading they are companions.
MEASURES = [
    ("top_eigenvalues", "lambda", "lambda_1", "λ₁ (loss / weight²)", "λ₁"),
    ("top_eigenvalues", "lambda_1_w2", "lambda_1_w2", "λ₁ ‖w‖² (loss)", ""),
    ("sharpness_keskar", "phi_full_1e-3", "phi_full_1e-3", "φ, full space, ε = 1e-3 (%)", "φ (ε = 1e-3)"),
    ("sharpness_keskar", "phi_relative_1e-3", "phi_relative_1e-3", "φ, box relative to |w| (%)", ""),
    ("noise_scale", "b_simple", "b_simple", "B_simple (examples)", "B_simple [95 %]"),
    ("preconditioned_curvature", "rate_lambda_1", "rate_lambda_1", "η λ₁(P⁻¹H)", ""),
]
IN_ORDER = [m for m in MEASURES if m[4]] + [m for m in MEASURES if not m[4]]
RATIOS = [("b_simple", "tr_sigma", "g2"), ("b_hessian", "tr_h_sigma", "g_h_g")]
COPIES = ["batch_bound", "coherence", "diversity"]


def write_names(file, text) -> None:
    for kind, labels in MEMBERS.items():
        file.create_dataset(f"names/{kind}/name", data=list(labels), dtype=text)
        file.create_dataset(f"names/{kind}/label", data=list(labels.values()), dtype=text)
    for i, column in enumerate(("probe", "quantity", "column", "label", "heading")):
        file.create_dataset(f"names/measures/{column}", data=[m[i] for m in IN_ORDER], dtype=text)
    file["names/measures/companion"] = np.array([not m[4] for m in IN_ORDER], np.uint8)
    for i, column in enumerate(("quantity", "numerator", "denominator")):
        file.create_dataset(f"names/ratios/{column}", data=[r[i] for r in RATIOS], dtype=text)
    file.create_dataset("names/copies/quantity", data=COPIES, dtype=text)


def listed(kind: str) -> list[dict]:
    """What `basin inspect --list KIND --json` says."""
    found = [
        {"name": name, "label": label, "help": "-"}
        for name, label in MEMBERS["data_sets" if kind == "datasets" else kind].items()
    ]
    if kind == "probes":
        for entry in found:
            mine = [m for m in MEASURES if m[0] == entry["name"]]
            entry["headlines"] = [{"quantity": m[1], "heading": m[4], "label": m[3]} for m in mine]
            noise = entry["name"] == "noise_scale"
            entry["ratios"] = [dict(zip(("quantity", "numerator", "denominator"), r)) for r in RATIOS] if noise else []
            entry["copies"] = COPIES if noise else []
    return found


def make_program(folder, says=listed):
    """A program that lists what `says` gives, as a script; its path, for BASIN_BINARY."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in ("optimizers", "models", "datasets", "probes"):
        (folder / f"{kind}.json").write_text(json.dumps({"schema": "basin/cli/list", "entries": says(kind)}))
    program = folder / "basin"
    program.write_text(f'#!/bin/sh\n[ "$1 $2 $4" = "inspect --list --json" ] && exec cat "{folder}/$3.json"\nexit 1\n')
    program.chmod(0o755)
    return program
