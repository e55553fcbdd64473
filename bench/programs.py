"""Running what prints its measurement as one last line of JSON."""
import json
import os
import subprocess
import sys

SETTINGS = ("OMP_NUM_THREADS", "MALLOC_ARENA_MAX")  # of the user's shell, which would be some tools' and not others'


def measure(command, **environment):
    inherited = {key: value for key, value in os.environ.items() if key not in SETTINGS}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env={**inherited, **environment})
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout.strip().splitlines()[-1])
