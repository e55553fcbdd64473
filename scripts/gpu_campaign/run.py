#!/usr/bin/env python3
"""Runs a packed campaign (scripts/gpu-campaign) on a bare machine with the driver and the pinned torch, most worth having first:

    python3 run --seconds 480 --out results [--device cpu] [--set KEY=VALUE ...] [--only STEP ...] [--skip STEP ...]

No step begins that can't get its least time, none outlives the budget, and what a step found is on disk before the next one begins.
OUT/steps.json has a row per step, OUT/STEP.log what it printed; at the end OUT/campaign.tar.xz holds all of it.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
GRACE = 15  # seconds that a sweep has for its state between SIGTERM and SIGKILL
LARGEST = 3 << 20  # bytes of a file that goes into the archive; sweep.h5 always does


class Campaign:
    def __init__(self, args):
        self.args, self.began = args, time.monotonic()
        self.out = args.out.resolve()
        self.root = (args.work or HERE / "unpacked").resolve()
        self.rows, self.lock = [], threading.Lock()
        self.out.mkdir(parents=True, exist_ok=True)

    def left(self):
        return self.args.seconds - (time.monotonic() - self.began)

    def bin(self, name):
        return self.root / "programs" / name

    def note(self, step, **facts):
        at = round(time.monotonic() - self.began, 1)
        with self.lock:
            self.rows.append({"step": step, "at_s": at, **facts})
            (self.out / "steps.json").write_text(json.dumps(self.rows, indent=1) + "\n")
            print(f"[{at:6.1f} s] {step}: " + ", ".join(f"{key} {value}" for key, value in facts.items()), flush=True)

    def run(self, step, command, limit):
        """A command with its output in OUT/STEP.log; stopped at its limit or at the end of the budget."""
        began = time.monotonic()
        limit = min(limit, self.left() - GRACE)
        with open(self.out / f"{step}.log", "ab") as log:
            process = subprocess.Popen(
                [str(word) for word in command],
                stdout=log,
                stderr=log,
                cwd=self.root,
                env=self.environment(),
                start_new_session=True,
            )
            try:
                code = process.wait(max(1, limit))
            except subprocess.TimeoutExpired:
                code = "stopped at its limit"
                stop(process)
        self.note(step, code=code, seconds=round(time.monotonic() - began, 1))
        return code

    def environment(self):
        return {
            **os.environ,
            "PYTHONPATH": f"{self.root}/site:{self.root}/python",
            "BASIN_SOURCE_DIR": str(self.root),
            "BASIN_BINARY": str(self.bin("basin")),
        }


def stop(process):
    for what, patience in ((signal.SIGTERM, GRACE), (signal.SIGKILL, 5)):
        try:
            os.killpg(process.pid, what)
            process.wait(patience)
            return
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


# ---- steps -------------------------------------------------------------------------------------------------------------


def unpack(campaign):
    root = campaign.root
    if not (root / "bin").exists():
        root.mkdir(parents=True, exist_ok=True)
        subprocess.run(["tar", "-xJf", str(HERE / "payload.tar.xz"), "-C", str(root)], check=True)
    import torch  # the machine's own

    packages = pathlib.Path(torch.__file__).parent.parent
    folders = [root / "lib", packages / "torch/lib", *sorted(packages.glob("nvidia/*/lib"))]
    (root / "programs").mkdir(exist_ok=True)
    for program in (root / "bin").iterdir():
        wrapper = root / "programs" / program.name
        path = ":".join(map(str, folders))
        wrapper.write_text(f'#!/bin/sh\nLD_LIBRARY_PATH="{path}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}" exec "{program}" "$@"\n')
        wrapper.chmod(0o755)
    wheels = sorted((root / "wheels").glob("*.whl")) if (root / "wheels").exists() else []
    if wheels and not (root / "site").exists():
        pip = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-compile", "--target", root / "site"]
        campaign.run("wheels", [*pip, *wheels], 60)
    campaign.note("unpack", torch=torch.__version__, gpus=torch.cuda.device_count())


def machine(campaign):
    """What the machine is, and what its memory does: a copy of 2 GiB, read and written."""
    import torch

    facts = {"python": sys.version.split()[0], "torch": torch.__version__, "cores": os.cpu_count()}
    if torch.cuda.is_available():
        facts["gpu"] = torch.cuda.get_device_name()
        source = torch.empty(1 << 29, device="cuda").normal_()
        target = torch.empty_like(source)
        times = []
        for _ in range(12):
            first, last = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            first.record()
            target.copy_(source)
            last.record()
            last.synchronize()
            times.append(first.elapsed_time(last) / 1e3)
        facts["copy_tb_per_s"] = round(2 * source.nbytes / sorted(times)[6] / 1e12, 2)
        del source, target
        torch.cuda.empty_cache()
    (campaign.out / "machine.json").write_text(json.dumps(facts) + "\n")
    campaign.note("machine", **facts)


def cases_of(campaign, program):
    listed = subprocess.run(
        [campaign.bin(program), "--gtest_list_tests", "--gtest_filter=*Gpu*"],
        capture_output=True, text=True, env=campaign.environment(), check=False,
    )  # fmt: skip
    cases, suite = [], ""
    for line in listed.stdout.splitlines():
        word = line.split("#")[0].strip()
        if line.startswith("  "):
            cases.append(suite + word)
        elif word.endswith("."):
            suite = word
    return cases


VERDICT = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] ([^ ,]+)")


def test_program(campaign, program, verdicts):
    """Every case of a program by itself as far as verdicts go: what a crash, or an error that CUDA doesn't recover from, leaves undone
    is done by another process."""
    verdicts[program] = {"?": "its cases could not be listed"}
    waiting = cases_of(campaign, program)
    verdicts[program] = {}
    while waiting and campaign.left() > 30:
        process = subprocess.Popen(
            [campaign.bin(program), f"--gtest_filter={':'.join(waiting)}"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            cwd=campaign.root, env=campaign.environment(), start_new_session=True,
        )  # fmt: skip
        watch = threading.Timer(min(180, campaign.left() - 20), stop, [process])
        watch.start()
        current, lost = None, False
        with open(campaign.out / f"{program}.log", "a") as log:
            for line in process.stdout:
                log.write(line)
                log.flush()
                if line.startswith("[ RUN      ] "):
                    current, lost = line.split()[-1], False
                lost = lost or any(word in line for word in ("CUDA error", "CUBLAS", "cudaError", "captur"))
                found = VERDICT.match(line)
                if found and found[2] == current:
                    verdicts[program][current] = found[1]
                    current = None
                    if found[1] == "FAILED" and lost:
                        stop(process)
        process.wait()
        watch.cancel()
        if current:
            verdicts[program][current] = f"ended with {process.returncode}"
        undone = [case for case in waiting if case not in verdicts[program]]
        if len(undone) == len(waiting):
            verdicts[program]["?"] = f"no case began: exit code {process.returncode}"
            break
        waiting = undone
    for case in waiting:
        verdicts[program].setdefault(case, "no time")


def tests(campaign):
    verdicts = {}
    programs = sorted(path.name for path in (campaign.root / "bin").glob("test_*"))
    threads = [threading.Thread(target=test_program, args=(campaign, program, verdicts)) for program in programs]
    threads.append(threading.Thread(target=make_cifar10, args=(campaign,)))  # the processor is idle
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (campaign.out / "tests.json").write_text(json.dumps(verdicts, indent=1) + "\n")
    for program in programs:
        of_program = verdicts.get(program, {"?": "its thread ended"})
        bad = {case: verdict for case, verdict in of_program.items() if verdict not in ("OK", "SKIPPED")}
        good = sum(verdict == "OK" for verdict in of_program.values())
        campaign.note(program, ok=good, skipped=len(of_program) - good - len(bad), bad=bad)


def make_cifar10(campaign):
    source, target = campaign.root / "cifar10/unpack_cifar10.py", campaign.root / "datasets/cifar10"
    if not source.exists() or target.exists():
        return
    unfinished = campaign.root / "datasets/unfinished"
    if campaign.run("cifar10-unpack", [sys.executable, source, unfinished], 120) == 0:
        unfinished.rename(target)


def twins(campaign):
    """All measurements of one run of the CPU, on both devices at once."""
    if not (campaign.root / "twin").exists():
        return
    threads = [threading.Thread(target=measure_twin, args=(campaign, device)) for device in ("cpu", campaign.args.device)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def measure_twin(campaign, device):
    copy = campaign.out / f"twin-{device}"
    if copy.exists():
        return
    shutil.copytree(campaign.root / "twin", copy)
    threads = 8 if device == "cpu" else 2
    command = [campaign.bin("basin"), "probe", copy, "--subset", 64, "--micro-batch", 64]
    campaign.run(f"twin-{device}", [*command, *assigned(f"runtime.device={device}", f"runtime.threads={threads}")], 150)


def curvature(campaign):
    (campaign.out / "curvature").mkdir(exist_ok=True)
    if (campaign.root / "curvature_setting.h5").exists():  # where the benchmark looks for it; else it makes one
        shutil.copy(campaign.root / "curvature_setting.h5", campaign.out / "curvature")
    command = [sys.executable, "bench/curvature.py", "--basin", campaign.bin("bench_curvature"), "--python", sys.executable]
    command += ["--device", campaign.args.device, "--threads", 8, "--examples", 1000, "--repeats", 2]
    campaign.run("curvature", [*command, "--out", campaign.out / "curvature/curvature.json"], 150)


def optimizers(campaign):
    command = [sys.executable, "bench/optimizers.py", "--basin", campaign.bin("bench_optimizers"), "--python", sys.executable]
    command += ["--device", campaign.args.device, "--threads", 8, "--seconds", 0.4, "--repeats", 3]
    campaign.run("optimizers", [*command, "--out", campaign.out / "optimizers.json"], 100)


def training(campaign):
    command = [sys.executable, "bench/training.py", "--bin", campaign.root / "programs", "--python", sys.executable]
    command += ["--device", campaign.args.device, "--threads", 8, "--seconds", 2, "--repeats", 2]
    if campaign.args.device == "cpu":
        command += ["--cases", "small_cnn B=128"]
    campaign.run("training", [*command, "--out", campaign.out / "training.json"], 170)


def kernels(campaign):
    """Which kernels an update of small_cnn spends its time in, graphs taken apart."""
    if not shutil.which("ncu"):
        campaign.note("kernels", skipped="no ncu")
        return
    profile = ["ncu", "--clock-control", "none", "--graph-profiling", "node", "--metrics", "gpu__time_duration.sum"]
    profile += ["--print-summary", "per-kernel", "--launch-skip", 500, "--launch-count", 400]
    campaign.run("kernels", [*profile, campaign.bin("bench_training"), "small_cnn", 1024, 8, 1, 1024, campaign.args.device], 60)


def ranks(campaign):
    """Updates, products and sums of davidnet on 1, 2, ... ranks: sharing one GPU through the host, or each with its own by NCCL."""
    import torch

    folder = campaign.out / "ranks"
    folder.mkdir(exist_ok=True)
    shutil.copy(campaign.root / "configs/davidnet.toml", folder / "study.toml")
    command = [campaign.bin("basin"), "scaling", folder, "--ranks", max(2, torch.cuda.device_count()), "--rounds", 3]
    settings = ["data.set=cifar10-5k", "data.path=", "batch_size=2048", "ghost_batch=128"]
    if campaign.args.device == "cpu":
        settings += ["davidnet.width=4", "probes.subset=100"]
    campaign.run("ranks", [*command, *assigned(f"runtime.device={campaign.args.device}", *settings)], 90)


def assigned(*settings):
    return [word for setting in settings for word in ("--set", setting)]


def study(name, limit, *settings, jobs=1):
    def run(campaign):
        if not (campaign.root / "datasets/cifar10").exists():
            make_cifar10(campaign)
        out = campaign.out / name
        device = f"runtime.device={campaign.args.device}"
        command = [campaign.bin("basin"), "sweep", f"configs/{name}.toml", "--out", out, "--jobs", jobs]
        own = campaign.args.set if name == "cifar10" else []
        campaign.run(name, [*command, *assigned(device, *settings, *own)], limit)
        if not (out / "sweep.h5").exists():  # stopped: what is finished is worth having
            campaign.run(f"{name}-collect", [campaign.bin("basin"), "collect", out], 60)

    run.__doc__ = f"configs/{name}.toml as far as its time goes"
    return run


# Name, least seconds worth beginning with, what it does; in order of worth.
STEPS = {
    "unpack": (0, unpack),
    "machine": (0, machine),
    "tests": (40, tests),
    "twins": (40, twins),
    "curvature": (40, curvature),
    "optimizers": (40, optimizers),
    "airbench": (30, study("airbench", 120)),
    "training": (60, training),
    "kernels": (20, kernels),
    "ranks": (30, ranks),
    "davidnet": (40, study("davidnet", 170)),
    # Smallest, middle and largest batch, to the same training loss: the question itself.
    "cifar10": (60, study("cifar10", 1800, "protocol=B", "batch_size=[256, 4096, 65536]", jobs=4)),
}


def archive(campaign):
    with tarfile.open(campaign.out / "campaign.tar.xz", "w:xz", preset=3) as tar:
        for path in sorted(campaign.out.rglob("*")):
            small = path.is_file() and (path.name == "sweep.h5" or path.stat().st_size <= LARGEST)
            if small and path.name != "campaign.tar.xz":
                tar.add(path, path.relative_to(campaign.out))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, required=True, help="until everything has ended, the archive too")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--work", type=pathlib.Path, help="where it is unpacked; by default next to this file")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="cpu tries a campaign of a build without CUDA")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="for the sweep of configs/cifar10.toml")
    parser.add_argument("--only", nargs="*", choices=STEPS, default=[])
    parser.add_argument("--skip", nargs="*", choices=STEPS, default=[])
    args = parser.parse_args()
    campaign = Campaign(args)
    args.seconds -= 10  # the archive
    for name, (least, step) in STEPS.items():
        if name != "unpack" and (name in args.skip or (args.only and name not in args.only)):
            continue
        if campaign.left() < least + GRACE:
            campaign.note(name, skipped="no time")
            continue
        try:
            step(campaign)
        except Exception as error:  # one step's fault isn't the others'
            campaign.note(name, error=repr(error))
    campaign.note("end", seconds=round(time.monotonic() - campaign.began, 1))
    archive(campaign)


if __name__ == "__main__":
    main()
