"""Two folders of results compared to the bit: which files, datasets, attributes and lines of text differ.

    tally = compare_trees(before, after, may_differ)   # may_differ: what an address has to match for its value not to be looked at
    tally.changes, tally.files, tally.datasets, tally.numbers

Addresses are FILE:/group/dataset and FILE:/group@attribute in HDF5, FILE:key in JSON, FILE:line in other text, FILE:content of the rest.
What may differ must still be there, with the same type and shape.
"""

import concurrent.futures
import contextlib
import dataclasses
import fnmatch
import functools
import itertools
import json
import pathlib

import h5py
import numpy as np

SHOWN = 3  # lines of a dataset that differs
LONGEST = 70  # characters of a value shown
TEXT = {".toml", ".md", ".csv", ".txt", ""}
WITHOUT = "(not there)"


@dataclasses.dataclass
class Change:
    """Where something differs, in how many places, and the first of them in words."""

    address: str
    count: int
    lines: list[str]


@dataclasses.dataclass
class Tally:
    changes: list[Change] = dataclasses.field(default_factory=list)
    files: int = 0
    datasets: int = 0
    numbers: int = 0
    excused: set[str] = dataclasses.field(default_factory=set)  # patterns of what may differ that were met

    def add(self, address, before, after, count=1):
        self.changes.append(Change(address, count, [f"{address}: {shown(before)} -> {shown(after)}"]))

    def __add__(self, other):
        return Tally(self.changes + other.changes, self.files + other.files, self.datasets + other.datasets,
                     self.numbers + other.numbers, self.excused | other.excused)  # fmt: skip

    def excuses(self, address, may_differ):
        pattern = matches(address, may_differ)
        if pattern:
            self.excused.add(pattern)
        return bool(pattern)


def matches(address, patterns):
    """The first pattern that the address matches, or none."""
    return next((pattern for pattern in patterns if fnmatch.fnmatchcase(address, pattern)), None)


def shown(value):
    text = str(value) or "(empty)"
    return text if len(text) <= LONGEST else text[:LONGEST] + "..."


def compare_trees(before, after, may_differ, jobs=1):
    tally = Tally()
    roots = pathlib.Path(before), pathlib.Path(after)
    paths = [{str(path.relative_to(root)) for path in root.rglob("*")} for root in roots]
    report_missing(tally, *paths)
    names = [name for name in sorted(paths[0] & paths[1]) if not all((root / name).is_dir() for root in roots)]
    compare = functools.partial(compare_file, roots, may_differ)
    if jobs == 1:
        return sum(map(compare, names), tally)
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        return sum(pool.map(compare, names, chunksize=8), tally)


def compare_file(roots, may_differ, name):
    tally = Tally(files=1)
    one, two = (root / name for root in roots)
    if one.is_dir() or two.is_dir():
        tally.add(name, *("a folder" if path.is_dir() else "a file" for path in (one, two)))
    else:
        comparison = {".h5": compare_hdf5, ".json": compare_json}.get(one.suffix, compare_content)
        comparison(tally, name, one, two, may_differ)
    return tally


def report_missing(tally, before, after):
    """A folder that is missing counts alone, not all that is in it."""
    for name in sorted(before ^ after):
        there, other = (before, after) if name in before else (after, before)
        parent = str(pathlib.PurePath(name).parent)
        if parent == "." or parent in other:
            inside = sum(1 for path in there if path.startswith(name + "/"))
            tally.add(name, *(("there", WITHOUT) if there is before else (WITHOUT, "there")), count=1 + inside)


def compare_names(tally, prefix, before, after):
    """Reports what one side alone has; returns what both have, in order."""
    for name in sorted(set(before) ^ set(after)):
        tally.add(prefix + name, *("there" if name in side else WITHOUT for side in (before, after)))
    return [name for name in before if name in after]


def compare_order(tally, address, before, after):
    """Readers show columns and attributes in the order of creation."""
    for one, two in zip(before, after):
        if one != two and set(before) == set(after):
            return tally.add(f"{address} (order)", one, two)


def compare_content(tally, name, one, two, may_differ):
    before, after = one.read_bytes(), two.read_bytes()
    if tally.excuses(f"{name}:content", may_differ) or before == after:
        return
    if one.suffix in TEXT:
        with contextlib.suppress(UnicodeDecodeError):
            return compare_lines(tally, name, before.decode().splitlines(), after.decode().splitlines())
    tally.add(f"{name}:content", f"{len(before)} bytes", f"{len(after)} others")


def compare_lines(tally, name, before, after):
    lines = itertools.zip_longest(before, after, fillvalue=WITHOUT)
    found = [f"{name}:{i}: {shown(a)} -> {shown(b)}" for i, (a, b) in enumerate(lines, 1) if a != b]
    if found:
        tally.changes.append(Change(name, len(found), found[:SHOWN]))


def compare_json(tally, name, one, two, may_differ):
    before, after = (json.loads(path.read_text()) for path in (one, two))
    for key in compare_names(tally, f"{name}:", before, after):
        if not tally.excuses(f"{name}:{key}", may_differ) and repr(before[key]) != repr(after[key]):
            tally.add(f"{name}:{key}", repr(before[key]), repr(after[key]))


def compare_hdf5(tally, name, one, two, may_differ):
    with h5py.File(one) as before, h5py.File(two) as after:
        objects = [objects_of(file) for file in (before, after)]
        for path in compare_names(tally, f"{name}:", *objects):
            compare_objects(tally, f"{name}:{path}", (before, after), [found[path] for found in objects], may_differ)


def objects_of(file):
    """Groups and datasets by path, the root among them."""
    found = {"/": file}
    file.visititems(lambda path, item: found.update({"/" + path: item}))
    return found


def compare_objects(tally, address, files, items, may_differ):
    names = [list(item.attrs) for item in items]
    compare_order(tally, f"{address}@", *names)
    for name in compare_names(tally, f"{address}@", *names):
        types, values = zip(*(attribute(item, name) for item in items))
        compare_arrays(tally, f"{address}@{name}", files, types, values, may_differ)
    kinds = [type(item).__name__ for item in items]
    if kinds[0] != kinds[1]:
        tally.add(address, *kinds)
    elif kinds[0] == "Dataset":
        tally.datasets += 1
        compare_arrays(tally, address, files, [item.id.get_type() for item in items], [item[()] for item in items], may_differ)
    else:
        compare_order(tally, address, *(list(item) for item in items))


def attribute(item, name):
    """Its type in the file and its value."""
    found = item.attrs.get_id(name)
    value = np.zeros(found.shape or (), found.dtype)
    if found.shape is not None:
        found.read(value)
    return found.get_type(), value


def compare_arrays(tally, address, files, types, values, may_differ):
    one, two = map(plain, values, files)
    if not types[0].equal(types[1]):
        tally.add(address, *(f"type {array.dtype}" for array in (one, two)))
    elif one.shape != two.shape:
        tally.add(address, *(f"shape {array.shape}" for array in (one, two)))
    elif not tally.excuses(address, may_differ):
        tally.numbers += one.size if one.dtype.kind in "biuf" else 0
        compare_elements(tally, address, one, two)


def plain(value, file):
    """An array of numbers, or of objects that compare by value: texts, and paths in place of references."""
    array = np.asarray(value)
    if array.dtype.kind in "biuf":
        return array
    texts = np.empty(array.shape, object)
    for place in np.ndindex(array.shape):
        texts[place] = described(array[place], file)
    return texts


def described(value, file):
    if isinstance(value, h5py.Reference):
        with contextlib.suppress(KeyError):
            return file[value].name
        return "(nothing)"
    if isinstance(value, (np.ndarray, np.void)):  # a dimension's scales; a pair of dataset and dimension
        return str([described(part, file) for part in value])
    return value.decode() if isinstance(value, bytes) else str(value)


def compare_elements(tally, address, one, two):
    differ = np.flatnonzero((bits(one) != bits(two)).any(axis=1))
    if len(differ):
        lines = [f"{address}{place(one, i)}: {in_words(one.flat[i], two.flat[i])}" for i in differ[:SHOWN]]
        tally.changes.append(Change(address, len(differ), lines))


def bits(array):
    """A row of bytes per element: NaN equals NaN of the same bits, 0 isn't -0. Texts as they are."""
    rows = np.ascontiguousarray(array).reshape(-1, 1)
    return rows if array.dtype == object else rows.view(np.uint8)


def place(array, i):
    return str([int(k) for k in np.unravel_index(i, array.shape)]) if array.shape else ""


def in_words(before, after):
    """Numbers that look alike with their bits."""
    texts = [shown(before), shown(after)]
    if texts[0] == texts[1] and not isinstance(before, str):
        texts = [f"{text} (0x{value.tobytes()[::-1].hex()})" for text, value in zip(texts, (before, after))]
    return " -> ".join(texts)
