"""What a Hessian-vector product costs when another process answers it, over the same product within Basin's process:

    ninja -C build/release bench_outside_products
    PYTHONPATH=python .venv-oracles/bin/python bench/outside_products.py build/release/bin/bench_outside_products [ROUNDS]

The network is an MLP of a million parameters (784-1000-200-10) in float32, on as many random examples as make a product take 20 ms
within. In turns, so that other work on the machine meets all: a few products within, a few asked of PyTorch in Python, as many by calling
the Problem's own method, and a few asked of a problem of the same size that has its answer ready, which is what asking costs. The engine's
are timed there, from the vector before the question to the vector after the answer. One thread each; the allocator keeps its memory, as
Basin's does, else a call pays for fresh pages.
"""

import json
import os
import statistics
import subprocess
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

import basin
from basin.answering import Answering, SharedVectors, answer_all, hello
from basin.measuring import engine
from programs import ALLOCATOR

WANTED_MS, EACH = 20, 20
ENVIRONMENT = ALLOCATOR | {"OMP_NUM_THREADS": "1"}


class Ready(basin.Problem):
    """The answer is there already."""

    def __init__(self, like):
        self.parameters, self.dtype, self.examples = like.parameters, like.dtype, like.examples
        self.found = np.ones(sum(int(np.prod(p.shape)) for p in self.parameters), self.dtype)

    def loss(self, w):
        return 0.0

    def product(self, w, v):
        return self.found


def problem_of(examples):
    torch.manual_seed(1)
    net = torch.nn.Sequential(
        torch.nn.Linear(784, 1000), torch.nn.Tanh(), torch.nn.Linear(1000, 200), torch.nn.Tanh(), torch.nn.Linear(200, 10)
    )
    batch = (torch.randn(examples, 784), torch.randint(10, (examples,)))
    return basin.torch_problem(net, lambda net, batch: F.cross_entropy(net(batch[0]), batch[1], reduction="none"), [batch])


def called(problem, w, v, count):
    found = []
    for _ in range(count):
        start = time.perf_counter()
        problem.product(w, v)
        found.append(1000 * (time.perf_counter() - start))
    return found


def asked(problem, vectors, program, count):
    with engine([program, str(count)], vectors.descriptor, None) as (words, _):
        words.say(hello(problem))
        return answer_all(Answering(problem, vectors), words, lambda step: None, lambda: None)


def within(program, examples, count):
    done = subprocess.run([program, str(count), str(examples)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["done"]


def examples_for(program):
    """As many as make a product take WANTED_MS."""
    examples = 16
    while (took := statistics.median(within(program, examples, 5))) < 0.9 * WANTED_MS:
        examples = max(examples + 16, int(examples * WANTED_MS / took))
    return examples


def main():
    if any(os.environ.get(key) != value for key, value in ENVIRONMENT.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ENVIRONMENT})
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
    problem = problem_of(examples_for(program))
    w = problem.weights()
    vectors = SharedVectors(w.size, problem.dtype, problem.examples)
    vectors.weights[:] = w
    v = np.random.default_rng(1).normal(size=w.size).astype(np.float32)
    manners = {
        "within": lambda: within(program, problem.examples, EACH),
        "asked for": lambda: asked(problem, vectors, program, EACH),
        "called": lambda: called(problem, w, v, EACH),
        "asking alone": lambda: asked(Ready(problem), vectors, program, EACH),
    }
    rows = [{what: statistics.median(run()) for what, run in manners.items()} for _ in range(rounds)]
    problem.restore()
    print(f"{w.size} parameters, {problem.examples} examples, {rounds} rounds of {EACH}; medians of a round's [quartiles]")
    ratios = {"asked for over within": [row["asked for"] / row["within"] for row in rows]}
    for what, found in ({f"{what}, ms": [row[what] for row in rows] for what in manners} | ratios).items():
        low, middle, high = statistics.quantiles(found, n=4)
        print(f"{what:<22} {middle:.3f} [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    main()
