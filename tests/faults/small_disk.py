"""A disk of its own for one folder: a tmpfs, whose size and rights can be changed while it is in use. Mounting needs root."""

import os
import pathlib
import shutil
import subprocess

ROOM = 512 << 20  # bytes


def why_not():
    """Why nothing can be mounted here, in one line, or None."""
    if os.geteuid() != 0:
        return "mounting needs root"
    tried = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"], capture_output=True, text=True)
    return f"nothing can be mounted here: {tried.stderr.strip()}" if tried.returncode else None


class SmallDisk:
    """with SmallDisk(folder): a disk is mounted on it. What is on it at the end is copied into the folder itself."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def __enter__(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        while self.folder.is_mount():  # of a campaign that was killed
            subprocess.run(["umount", "--lazy", self.folder], check=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", self.folder], check=True)
        return self

    def __exit__(self, *error):
        kept = self.folder.with_name(self.folder.name + "-kept")
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.folder, kept)
        subprocess.run(["umount", "--lazy", self.folder], check=True)
        self.folder.rmdir()
        kept.rename(self.folder)

    def used(self):
        """Bytes."""
        disk = os.statvfs(self.folder)
        return (disk.f_blocks - disk.f_bfree) * disk.f_frsize

    def resize(self, size=ROOM):
        self._remount(f"size={max(size, 4096)}")

    def read_only(self, on):
        self._remount("ro" if on else "rw")

    def _remount(self, options):
        subprocess.run(["mount", "-o", f"remount,{options}", self.folder], check=True)
