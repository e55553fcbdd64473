"""One tool that `make bench-curvature` measures next to Basin:

    curvature_peers.py TOOL SETTING.h5 EXAMPLES SEED THREADS [DEVICE]

prints one line of JSON, a list of {case, hvps, wall_s, residual, eigenvalues, version}. Every tool as its users call it; products are
counted at the operator; the residual is the largest |Hv - lambda v| / |lambda| by one more product of our own.
"""

import importlib.metadata
import json
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F
from scipy.sparse.linalg import LinearOperator, eigsh

import curvature_setting

TOLERANCE = 1e-3


class RetainedHessian:
    """H v by double backward through a graph that is built once: the strongest plain baseline."""

    def __init__(self, model, images, labels):
        self.parameters = list(model.parameters())
        gradient = torch.autograd.grad(F.cross_entropy(model(images), labels), self.parameters, create_graph=True)
        self.gradient = torch.cat([g.reshape(-1) for g in gradient])
        self.size, self.products = self.gradient.numel(), 0

    def __call__(self, v):
        self.products += 1
        parts = torch.autograd.grad(self.gradient, self.parameters, grad_outputs=v, retain_graph=True)
        return torch.cat([p.reshape(-1) for p in parts])


def diagonal_spectrum():
    """20,010 eigenvalues, ten of them clustered at a ratio of 0.93."""
    bulk = torch.rand(20000, generator=torch.Generator().manual_seed(0)) * 1.3 - 0.3
    return torch.cat([10 * 0.93 ** torch.arange(10.0), bulk])


def worst_residual(apply, values, vectors):
    worst = 0.0
    for value, vector in zip(values, vectors):
        v = vector / vector.norm()
        worst = max(worst, float((apply(v) - value * v).norm() / abs(value)))
    return worst


class Counted:
    """A product with a matrix that counts how often it is taken."""

    def __init__(self, product):
        self.product, self.calls = product, 0

    def __call__(self, v):
        self.calls += 1
        return self.product(v)


def row(case, start, products, values, apply, vectors, tool):
    wall = time.perf_counter() - start
    values = [float(v) for v in values]
    return {
        "case": case,
        "hvps": products,
        "wall_s": wall,
        "eigenvalues": values,
        "residual": worst_residual(apply, values, vectors),
        "version": importlib.metadata.version(tool),
    }


def by_eigsh(apply, size, k, ncv, seed, device="cpu"):
    def matvec(x):
        return apply(torch.from_numpy(x.astype(np.float32).reshape(-1)).to(device)).cpu().numpy()

    v0 = np.random.default_rng(seed).standard_normal(size).astype(np.float32)
    operator = LinearOperator((size, size), matvec=matvec, dtype=np.float32)
    values, vectors = eigsh(operator, k, which="LA", tol=TOLERANCE, ncv=ncv, v0=v0)
    return values[::-1].copy(), torch.from_numpy(vectors[:, ::-1].copy().T).to(device)


def eigsh_rows(setting, seed):
    rows = []
    for k in (1, 5):
        for ncv in (k + 2, 8, 12) if setting[1].is_cuda else (k + 2, 8, 12, 16, 20):  # on a GPU the three that can be best there
            start = time.perf_counter()
            hessian = RetainedHessian(*setting)
            values, vectors = by_eigsh(hessian, hessian.size, k, ncv, seed, setting[1].device)
            one = row(f"top{k}", start, hessian.products, values, hessian, vectors, "scipy")
            rows.append({**one, "ncv": ncv})
    if setting[1].is_cuda:  # so small a matrix is no work for a GPU
        return rows
    d = diagonal_spectrum()
    for k in (1, 5):
        product = Counted(d.mul)
        start = time.perf_counter()
        values, vectors = by_eigsh(product, len(d), k, None, seed)
        rows.append({**row(f"clustered-top{k}", start, product.calls, values, lambda v: d * v, vectors, "scipy"), "ncv": 20})
    return rows


def pyhessian_rows(setting, seed):
    import pyhessian  # whose attribute `hessian` is the class, not the module

    module = sys.modules[pyhessian.hessian.__module__]
    products, original = [0], module.hessian_vector_product

    def counted(*arguments):
        products[0] += 1
        return original(*arguments)

    module.hessian_vector_product = counted
    model, images, labels = setting
    rows = []
    for k in (1, 5):
        torch.manual_seed(seed)
        products[0] = 0
        start = time.perf_counter()
        tool = module.hessian(model, F.cross_entropy, data=(images, labels), cuda=images.is_cuda)
        values, vectors = tool.eigenvalues(maxIter=100, tol=TOLERANCE, top_n=k)
        stop = products[0]
        flat = [torch.cat([p.reshape(-1) for p in v]) for v in vectors]
        rows.append(row(f"top{k}", start, stop, values, RetainedHessian(*setting), flat, "pyhessian"))
        model.zero_grad()
    return rows


def curvlinops_rows(setting, seed):
    from curvlinops import HessianLinearOperator

    model, images, labels = setting
    rows = []
    for k in (1, 5):
        start = time.perf_counter()
        operator = HessianLinearOperator(
            model,
            torch.nn.CrossEntropyLoss(),
            list(model.parameters()),
            [(images, labels)],
            check_deterministic=False,  # on a GPU products in float32 fail it; and it would count as time
            num_data=len(images),
        ).to_scipy()
        product = Counted(operator.matvec)
        v0 = np.random.default_rng(seed).standard_normal(operator.shape[0]).astype(np.float32)
        values, vectors = eigsh(
            LinearOperator(operator.shape, matvec=product, dtype=np.float32), k, which="LA", tol=TOLERANCE, v0=v0
        )
        flat = torch.from_numpy(vectors[:, ::-1].copy().T).to(images.device)
        rows.append(row(f"top{k}", start, product.calls, values[::-1], RetainedHessian(*setting), flat, "curvlinops-for-pytorch"))
    return rows


def eigenthings_rows(setting, seed):
    from hessian_eigenthings.algorithms.power_iteration import deflated_power_iteration
    from hessian_eigenthings.loss_fns.standard import supervised_loss
    from hessian_eigenthings.operators.base import CurvatureOperator
    from hessian_eigenthings.operators.hessian import HessianOperator

    products = [0]

    class CountedHessian(HessianOperator):
        def matvec(self, v):
            products[0] += 1
            return super().matvec(v)

    d = diagonal_spectrum()

    class Diagonal(CurvatureOperator):
        size, device, dtype = len(d), d.device, d.dtype

        def matvec(self, v):
            products[0] += 1
            return d * v

    model, images, labels = setting
    rows = []
    cases = [("top1", 1, 100), ("top5", 5, 100)]
    if not images.is_cuda:
        cases += [("clustered-top1", 1, 1000), ("clustered-top5", 5, 1000)]
    for case, k, most in cases:
        clustered = case.startswith("clustered")
        products[0] = 0
        start = time.perf_counter()
        operator = Diagonal() if clustered else CountedHessian(model, [(images, labels)], supervised_loss(F.cross_entropy))
        found = deflated_power_iteration(operator, k=k, max_iter=most, tol=TOLERANCE, seed=seed)
        stop = products[0]
        check = (lambda v: d * v) if clustered else RetainedHessian(*setting)
        rows.append(row(case, start, stop, found.eigenvalues, check, found.eigenvectors, "hessian-eigenthings"))
    return rows


TOOLS = {"eigsh": eigsh_rows, "pyhessian": pyhessian_rows, "curvlinops": curvlinops_rows, "eigenthings": eigenthings_rows}


def main():
    tool, path, count, seed, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
    device = sys.argv[6] if len(sys.argv) > 6 else "cpu"
    torch.set_num_threads(threads)
    torch.backends.cudnn.allow_tf32 = False  # else a GPU's products are those of a Hessian some 1e-4 away
    setting = [part.to(device) for part in curvature_setting.load(path, count)]
    hessian = RetainedHessian(*setting)
    hessian(torch.ones_like(hessian.gradient))  # lazy initialisation, of second derivatives too, is nobody's cost
    del hessian
    print(json.dumps(TOOLS[tool](setting, seed)))


if __name__ == "__main__":
    main()
