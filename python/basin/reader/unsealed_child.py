"""The child process of unsealed.py: it reads the HDF5 files that stdin names and says on stdout what is wrong with each, in lines of JSON.

It runs as a script by itself, without the package: nothing of the process that started it is imported again."""

import json
import resource
import signal
import sys

import h5py


def fault_of(path: str) -> str:
    try:
        with h5py.File(path, "r", locking=False) as file:
            read(file)
            file.visititems(lambda name, item: read(item))
    except Exception as error:
        first_line = (str(error).strip("'\"").splitlines() or [type(error).__name__])[0]
        return f"truncated, damaged or not an HDF5 file ({first_line})"
    return ""


def read(item: h5py.Group | h5py.Dataset | h5py.Datatype) -> None:
    """TypeError of a named type: Basin writes none, but damage can make one of a dataset."""
    dict(item.attrs)
    if not isinstance(item, h5py.Group):
        item[()]


def main() -> None:
    """A crash in here is an answer: no core file. The default action of SIGALRM ends a process that libhdf5 doesn't return to."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    for line in sys.stdin:
        question, answer = json.loads(line), ""
        if question is not None:  # null: whether it runs
            path, seconds = question
            signal.setitimer(signal.ITIMER_REAL, seconds)
            answer = fault_of(path)
            signal.setitimer(signal.ITIMER_REAL, 0)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
