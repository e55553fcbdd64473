"""The runs by which scripts/same_numbers.py compares two programs: short ones that together use every room.

A case is a function of a Program: it writes what it needs into its own folder and calls the program there, so that paths are relative
and the same on both sides. Studies are made from configs/tiny.toml.
"""

import json
import os
import pathlib
import shutil
import subprocess

import h5py

ENVIRONMENT = dict(os.environ, OMP_NUM_THREADS="1")
LONGEST_CALL = 1800  # seconds: something hangs


class Failed(Exception):
    """A call of the program that didn't end with 0."""


class Program:
    """One binary at work in one folder."""

    def __init__(self, binary: pathlib.Path, folder: pathlib.Path, configs: pathlib.Path):
        self.binary, self.folder = binary, folder
        folder.mkdir(parents=True)
        shutil.copy(configs / "tiny.toml", folder)
        shutil.copy(configs.parent / "tests/python/networks/script_net.pt", folder)

    def __call__(self, *arguments) -> str:
        words = [str(word) for word in arguments]
        try:
            done = subprocess.run(
                [self.binary, *words], cwd=self.folder, env=ENVIRONMENT, timeout=LONGEST_CALL, capture_output=True, text=True
            )
        except subprocess.TimeoutExpired:
            raise Failed(f"basin {' '.join(words)}: no end within {LONGEST_CALL} s") from None
        if done.returncode != 0:
            raise Failed(
                f"basin {' '.join(words)}: exit code {done.returncode}: {(done.stderr.strip() or 'silent').splitlines()[-1]}"
            )
        return done.stdout

    def train(self, settings: str) -> str:
        """The run's folder. Saved at every update, so that the states of the last two are there, however long it took."""
        said = self("train", "tiny.toml", "--out", "out", *sets(f"{settings} checkpoint_seconds=0")).split()
        if not said:
            raise Failed("basin train named no run")
        return said[0]

    def write(self, name: str, text: str) -> str:
        (self.folder / name).write_text(text)
        return name


def sets(settings: str):
    """One word per setting: `epochs=2 small_cnn.widths=[4,4]`."""
    return [word for setting in settings.split() for word in ("--set", setting)]


# ---- training: every technique and every network, some together ------------------------------------------------------------

A = "protocol=A-epochs batch_size=32 micro_batch=16 ghost_batch=16"
CHEAP = "top_eigenvalues,noise_scale,weight_norms"
TRAININGS = {
    "lookahead": f"{A} optimizer=sgd epochs=3 lookahead_every=4 lookahead_alpha=0.8 clip_gradient=0.5 weight_average=0.9 "
    "noise_scale_every=3 label_smoothing=0.1 data.validation=0.2 data.augmentation=crop_flip data.cutout=4 "
    "data.padding_mode=reflect test_time_augmentation=flip evaluate_every=100 checkpoint_every=8 layers_every=5 "
    "loss_levels=[2.25] sgd.nesterov=true sgd.weight_decay=1e-3 warmup=0.2",
    "growing-batch": f"{A} optimizer=adam epochs=4 batch_milestones=[0.3,0.7] batch_factor=2 noise_scale_every=2 noise_scale_beta=0.9 "
    "small_cnn.norm=batch ghost_batch=8 schedule=polynomial final_factor=0.1",
    "merged": f"{A} optimizer=lamb epochs=4 batch_size=600 micro_batch=100 noise_scale_every=1 noise_scale_beta=0.5 "
    "small_cnn.downsample=stride",
    "repeated": f"{A} optimizer=lars lars.preset=mlperf epochs=4 batch_size=600 micro_batch=100 duplicates=repeated "
    "noise_scale_every=1 scaling_rule=tpu learning_rate=1 warmup=1 schedule=polynomial schedule_unit=epochs",
    "sam": f"{A} optimizer=sgd epochs=2 perturbation.kind=sam perturbation.examples=16 small_cnn.norm=batch ghost_batch=8 "
    "clip_gradient=1 weight_average=0.99",
    "asam": f"{A} optimizer=adamw epochs=2 learning_rate=0.01 perturbation.kind=asam perturbation.rho=0.5 "
    "small_cnn.norm=group small_cnn.groups=2",
    "gradient-penalty": f"{A} optimizer=sgd epochs=2 perturbation.kind=gradient_penalty perturbation.strength=0.1 "
    "small_cnn.activation=gelu schedule=step milestones=[0.5] loss=mse",
    "dropout": f"{A} model=keskar_c1 keskar_c1.width=4 keskar_c1.hidden=[16,8] optimizer=adam learning_rate=1e-3 epochs=2 "
    "noise_scale_every=3 noise_scale_compat=gpt-neox weight_average=0.9",
    "resnet20": f"{A} model=resnet20 resnet20.width=4 resnet20.blocks=1 optimizer=lars learning_rate=2 epochs=2 "
    "noise_scale_every=2 scaling_rule=linear base_batch=16 warmup_rule=linear warmup_from=base warmup=0.1 "
    "weight_average=0.9",
    "airbench": f"{A} data.set=cifar10-5k model=airbench airbench.widths=[4,8,8] optimizer=sgd epochs=3 lookahead_every=5 "
    "lookahead_alpha=0.22 lookahead_schedule=cubic data.augmentation=crop_flip data.flip=alternating "
    'test_time_augmentation=flip_shift autocast=bfloat16 sgd.lr_factors=["norm_bias=64"] '
    'sgd.decay_factors=["norm_bias=0.015625"]',
    "davidnet": f"{A} model=davidnet davidnet.width=4 optimizer=lambc epochs=1 schedule=cosine schedule_unit=updates horizon=20 "
    "regime_batch=16",
    "lion": f"{A} optimizer=lion lion.weight_decay=0.1 learning_rate=1e-3 epochs=2",
    "signsgd": f"{A} optimizer=signsgd signsgd.weight_decay=0.1 learning_rate=1e-3 epochs=2",
    "muon": f"{A} optimizer=muon muon.weight_decay=0.1 learning_rate=0.01 epochs=2",
    "adafactor": f"{A} optimizer=adafactor adafactor.beta1=0.5 adafactor.relative_step=true adafactor.weight_decay=0.1 "
    "learning_rate=0.1 epochs=2",
    "shampoo": f"{A} optimizer=shampoo shampoo.accumulation=average shampoo.precondition_frequency=3 shampoo.max_dimension=20 "
    "learning_rate=0.01 epochs=2",
    "soap": f"{A} optimizer=soap soap.precondition_frequency=3 learning_rate=3e-3 epochs=2 scaling_rule=power base_batch=16 "
    "beta2_rule=half_life decay_rule=linear",
    "schedule-free-sgd": f"{A} optimizer=schedule_free_sgd schedule_free_sgd.weight_decay=1e-3 small_cnn.norm=batch ghost_batch=8 "
    "epochs=2 schedule=constant evaluate_every=100 weight_average=0.9 clip_gradient=0.5",
    "schedule-free-adamw": f"{A} optimizer=schedule_free_adamw schedule_free_adamw.weight_decay=0.1 learning_rate=3e-3 epochs=2 "
    "schedule=constant perturbation.kind=sam",
    "lbfgs": "protocol=A-updates updates=12 batch_size=64 micro_batch=32 model=mlp mlp.hidden=[8] mlp.activation=tanh "
    "optimizer=lbfgs dtype=float64 learning_rate=0.5",
    "gpt": f"{A} model=gpt gpt.layers=1 gpt.heads=2 gpt.width=8 gpt.dropout=0.1 loss=token_cross_entropy data.set=moby_dick "
    "data.context=8 data.stride=4 data.train_examples=256 data.test_examples=64 data.validation=0.1 optimizer=adamw "
    "learning_rate=0.01 epochs=2 label_smoothing=0.1 noise_scale_every=3 weight_average=0.9",
    "torchscript": f"{A} model=torchscript torchscript.file=script_net.pt optimizer=sgd epochs=2 ghost_batch=16",
    "noisy-quadratic": "protocol=B model=noisy_quadratic loss=mse data.set=coin_flips data.train_examples=1024 optimizer=sgd "
    "sgd.momentum=0 batch_size=64 learning_rate=0.5 schedule=constant warmup=0 dtype=float64 target_loss=129 "
    "max_gradients=20000 loss_levels=[130]",
    "noise": f"{A} optimizer=lars lars.trust=shuffled epochs=3 batch_size=64 small_cnn.norm=batch ghost_batch=8 noise.batch=16 "
    "noise.control=isotropic noise.match=temperature noise.reference_rate=0.1 noise.reference_momentum=0.9 learning_rate=0.1",
    "noise-merged": f"{A} optimizer=lamb lamb.trust=mean epochs=4 batch_size=600 micro_batch=100 noise.batch=32 "
    "noise.distribution=rademacher",
    "noise-clean": f"{A} optimizer=lamb epochs=3 batch_size=64 noise.batch=8 noise.preconditioner=clean clip_gradient=0.5",
    "stale": f"{A} optimizer=sgd epochs=3 batch_size=64 small_cnn.norm=batch ghost_batch=8 parallel.mode=ssp parallel.workers=3 "
    "parallel.bound=1 parallel.delays=exponential parallel.straggler=2",
    "shards": f"{A} optimizer=adam epochs=3 batch_size=64 small_cnn.norm=batch ghost_batch=8 parallel.shards=3 "
    "data.augmentation=crop_flip",
    "ledger": f"{A} optimizer=lamb epochs=4 batch_size=64 ledger_every=3 ledger_tolerance=0.01 small_cnn.norm=batch "
    "data.augmentation=crop_flip check_every=64 loss_levels=[2.31,2.29]",
    "diverged": f"{A} optimizer=sgd learning_rate=1e6 divergence_loss=100 noise_scale_every=1",
}


def resumed(basin: Program):
    """A run that was killed before its last update, as far as its files can say, and goes on."""
    settings = TRAININGS["lookahead"]
    run = basin.folder / basin.train(settings)
    with h5py.File(run / "ckpt" / "latest.h5") as checkpoint:
        os.truncate(run / "journal", checkpoint.attrs["journal_offset"])
    for name in ("run.h5", "status.json", "ckpt/end.h5", "ckpt/average.h5"):
        (run / name).unlink()
    basin.train(settings)


def recovered(basin: Program):
    """The journal, whose bytes aren't compared, as the program reads it."""
    run = basin.train(TRAININGS["growing-batch"])
    (basin.folder / run / "run.h5").unlink()
    basin("recover", run)


def training(settings):
    def case(basin: Program):
        run = basin.train(settings)
        basin("probe", run, "--only", CHEAP, "--subset", 48)
        if "weight_average" in settings:
            basin("probe", run, "--only", CHEAP, "--subset", 48, "--checkpoint", "average")

    return case


# ---- whole sweeps ----------------------------------------------------------------------------------------------------------


NOT_BY_TIME = sets("checkpoint_seconds=1e9")  # or a slow machine has a checkpoint more


def sweep(basin: Program):
    basin("sweep", "tiny.toml", "--out", "out", "--jobs", 2, *NOT_BY_TIME)


GRID = """
model = "mlp"
protocol = "A-updates"
updates = 6
batch_size = 64
[data]
set = "synthetic"
train_examples = 128
test_examples = 64
[mlp]
hidden = [8]
norm = "batch"
[probes]
run = ["preconditioned_curvature"]
subset = 32
[sweep]
"""


def presets(basin: Program):
    """Those of every optimiser that has some."""
    for option in json.loads(basin("inspect", "--list", "options", "--json"))["entries"]:
        optimizer, _, key = option["key"].partition(".")
        if key != "preset":
            continue
        names = option["constraint"].removeprefix("one of ").split(" | ")
        study = basin.write(f"{optimizer}.toml", f"{GRID}optimizer = ['{optimizer}']\n{optimizer}.preset = {names}\n")
        basin("sweep", study, "--out", optimizer, "--jobs", 2, *NOT_BY_TIME)


RULES = (
    GRID
    + """
optimizer = ["adamw", "larc"]
schedule = ["constant", "cosine", "polynomial"]
warmup_rule = ["none", "linear"]
[[sweep.set]]
when = { optimizer = "adamw" }
set = { scaling_rule = "malladi", base_batch = 32 }
[[sweep.set]]
when = { optimizer = "larc" }
set = { scaling_rule = "sqrt", base_batch = 32, warmup_from = "base", effective_rate = true }
"""
)


def rules(basin: Program):
    basin("sweep", basin.write("rules.toml", RULES), "--out", "out", "--jobs", 2, *NOT_BY_TIME)


BRANCHES = (
    GRID.replace("updates = 6", "updates = 6\ncheckpoint_every = 2")
    + """
optimizer = ["sgd", "lamb"]
[[sweep.arm]]
when = { optimizer = ["sgd", "lamb"] }
set.branch.from = 'protocol = "A-updates"'
set.branch.at = ["u000004", "end"]
set.branch.anneal = [0.0, 0.5]
set.branch.stream = ["continued", "restarted"]
[[sweep.skip]]
when = { branch.at = "end", branch.anneal = 0.0 }
"""
)


def branches(basin: Program):
    """All from runs of the study. The name of a branch that begins from a path is made from that file, with wall times in it."""
    basin("sweep", basin.write("branches.toml", BRANCHES), "--out", "out", "--jobs", 2, *NOT_BY_TIME)


TUNE = """
[tune]
trials = 4
seeds = [7]
halving = 2
[[tune.range]]
key = "learning_rate"
low = 0.002
high = 2.0
[[tune.range]]
when = { optimizer = "sgd" }
key = "sgd.momentum"
low = 0.5
high = 0.99
scale = "one_minus_log"
"""


def tune(basin: Program):
    """SGD's rate and momentum are searched; LAMB's rate is given by a rule of tiny.toml."""
    tiny = (basin.folder / "tiny.toml").read_text()
    study = basin.write("tune.toml", tiny.replace("\nlearning_rate = 0.05\n", '\nlearning_rate = "tuned"\n') + TUNE)
    basin("tune", study, "--out", "out", "--jobs", 2, "--set", "batch_size=128", *NOT_BY_TIME)


# ---- measurements of trained networks --------------------------------------------------------------------------------------

TRAINED = f"{A} epochs=2 optimizer=adamw learning_rate=0.01 checkpoint_every=4"


def probes(basin: Program):
    """Every probe by its defaults, of networks with and without batch normalisation; the other solver; starts from earlier vectors."""
    for norm in ("none", "batch"):
        run = basin.train(f"{TRAINED} small_cnn.norm={norm}")
        basin("probe", run, "--subset", 48)
    basin(
        "probe", run, "--subset", 48, "--only", "top_eigenvalues", "--set", "top_eigenvalues.solver=spectra", "--dtype", "float64"
    )
    basin("probe", run, "--subset", 48, "--only", "top_eigenvalues", "--checkpoint", "every", "--set", "top_eigenvalues.count=1")
    twin = "probes.twin=['top_eigenvalues','sharpness_keskar','weight_norms']"
    basin("probe", run, "--subset", 48, "--only", "weight_norms", "--set", twin)


def audit(basin: Program):
    run = basin.train(f"{TRAINED} small_cnn.norm=batch")
    basin("audit", f"{run}/ckpt/end.h5", "--subset", 16)


LANDSCAPES = [  # kind, number of runs, options
    ("plane", 1, "plane.alpha_points=5 plane.beta_points=3"),
    ("line", 1, "line.points=5 line.directions=3"),
    ("line", 2, "line.points=5 landscape.bn=interpolate"),
    ("trajectory", 1, "trajectory.alpha_points=4 trajectory.beta_points=3"),
    ("barrier", 2, "barrier.points=5"),
    ("curve", 2, "curve.points=5 curve.epochs=3 curve.batch_size=32"),
    ("radial", 1, "radial.directions=3 radial.deltas=[0.1]"),
]


def landscape(basin: Program):
    runs = [basin.train(f"{TRAINED} small_cnn.norm=batch seed={seed}") for seed in (1, 2)]
    for kind, count, settings in LANDSCAPES:
        basin("landscape", *runs[:count], "--kind", kind, *sets(f"{settings} landscape.subset=64 landscape.test_subset=64"))


# The longest first, so that the end isn't waited for with one core at work.
CASES = {case.__name__: case for case in (audit, probes, sweep, landscape, presets, tune, rules, resumed, recovered, branches)}
CASES |= {name: training(settings) for name, settings in TRAININGS.items()}
