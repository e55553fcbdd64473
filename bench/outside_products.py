"""What a Hessian-vector product costs when another process answers it, over the same product by a call:

    ninja -C build/release bench_outside_products
    PYTHONPATH=python .venv-oracles/bin/python bench/outside_products.py build/release/bin/bench_outside_products [ROUNDS]

The network is an MLP of a million parameters (784-1000-200-10) in float32, on as many random examples as make a product take 20 ms. In
turns, so that other work on the machine meets both: a few products by calling the Problem's own method, a few asked for by the engine.
The engine's are timed there, from the vector before the question to the vector after the answer.
"""

import statistics
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F

import basin
from basin.answering import Answering, SharedVectors, answer_all, hello
from basin.measuring import engine

WANTED_MS, EACH = 20, 20


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


def sized():
    """As many examples as make a product take WANTED_MS."""
    examples = 16
    while True:
        problem = problem_of(examples)
        w = problem.weights()
        took = statistics.median(called(problem, w, np.ones_like(w), 5))
        if took >= 0.9 * WANTED_MS:
            return problem, w
        examples = max(examples + 16, int(examples * WANTED_MS / took))


def main():
    program, rounds = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 10
    problem, w = sized()
    vectors = SharedVectors(w.size, problem.dtype, problem.examples)
    vectors.weights[:] = w
    v = np.random.default_rng(1).normal(size=w.size).astype(np.float32)
    ratios, inside, outside = [], [], []
    for _ in range(rounds):
        here, there = called(problem, w, v, EACH), asked(problem, vectors, program, EACH)
        inside += here
        outside += there
        ratios.append(statistics.median(there) / statistics.median(here))
    problem.restore()
    quartiles = statistics.quantiles(ratios, n=4)
    print(
        f"{w.size} parameters, {problem.examples} examples, {rounds} rounds of {EACH}: called {statistics.median(inside):.2f} ms, asked "
        f"for {statistics.median(outside):.2f} ms; ratio {statistics.median(ratios):.3f} [{quartiles[0]:.3f}, {quartiles[2]:.3f}]"
    )


if __name__ == "__main__":
    main()
