"""The files that the checks look at: what git tracks or would add, and is there."""

import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]


def tree_files() -> list[str]:
    """Paths below ROOT. A file that was just written counts, one that was just removed doesn't."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return sorted(name for name in set(listed) if (ROOT / name).is_file())


if __name__ == "__main__":
    print("\n".join(tree_files()))
