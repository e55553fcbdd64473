"""basin.batches: arrays in any structure."""

import numpy as np

from basin.batches import as_one, equal, parts


def test_batches_become_one_and_batches_again():
    x = np.arange(12.0).reshape(6, 2)
    batches = [{"x": x[:4], "scale": 2}, {"x": x[4:], "scale": 2}]
    whole = as_one(batches)
    assert np.array_equal(whole["x"], x) and whole["scale"] == 2
    again = parts(whole, [4, 2])
    assert all(equal(a, b) for a, b in zip(again, batches))
    assert np.shares_memory(again[1]["x"], whole["x"])


def test_other_things_that_differ_keep_batches_apart():
    x = np.ones((2, 3))
    assert as_one([{"x": x, "scale": 1}, {"x": x, "scale": 7}]) is None
    assert as_one([(x, np.float64(1)), (x, np.float64(7))]) is None


def test_what_is_equal():
    x = np.array([[1.0, np.nan]])
    assert equal((x, "a"), (x.copy(), "a"))
    assert not equal((x, "a"), (x, "b"))
    assert not equal((x, "a"), (np.array([[1.0, 2.0]]), "a"))
    assert not equal([x], [x, x])
    assert not equal([x], [1]) and not equal(None, [x])
