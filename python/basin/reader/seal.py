"""The seal of Basin's HDF5 files: 512 bytes in front that say whether the rest is what was written (docs/file-format.md)."""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from pathlib import Path

from .fault import ReadError

BYTES = 512
MAGIC = b"\x89BSEAL\r\n"
HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
VERSION = 1
CRC_AT = 508
KIND_AT, LABEL_AT = 64, 128

# Files found whole by this process: one that is read again and again is hashed once.
_whole: set[tuple] = set()


def check(path: str | Path) -> bool:
    """Whether `path` has a seal; False for an older version's file. A ReadError where it isn't what was sealed, or isn't HDF5."""
    path = Path(path)
    about = path.stat()
    key = identity(path, about)
    if key in _whole:
        return True
    with path.open("rb") as file:
        start = file.read(BYTES + len(HDF5_SIGNATURE))
        if not _has_block(path, start, about.st_size):
            return False
        length, digest = _block(path, start)
        if about.st_size < BYTES + length:
            raise ReadError(f"{path}: truncated: {about.st_size} bytes of {BYTES + length}")
        file.seek(BYTES)
        if about.st_size > BYTES + length or hashlib.file_digest(file, "sha256").digest() != digest:
            raise ReadError(
                f"{path}: damaged or edited since it was written (if it was edited on purpose, run `basin seal {path}`)"
            )
    _whole.add(key)
    return True


def identity(path: Path, about: os.stat_result) -> tuple:
    """Another one for a file that was replaced or written to."""
    return path.resolve(), about.st_ino, about.st_size, about.st_mtime_ns


def _has_block(path: Path, start: bytes, size: int) -> bool:
    if start.startswith(MAGIC):
        return True
    if start.startswith(HDF5_SIGNATURE):
        return False
    if start[BYTES:] == HDF5_SIGNATURE:
        raise ReadError(f"{path}: damaged or not a Basin file: no seal in its first {BYTES} bytes")
    raise ReadError(f"{path}: truncated, damaged or not an HDF5 file ({size} bytes)")


def _block(path: Path, start: bytes) -> tuple[int, bytes]:
    """The length and the SHA-256 of what follows the block."""
    if len(start) < BYTES:
        raise ReadError(f"{path}: truncated: {len(start)} bytes")
    (crc,) = struct.unpack_from("<I", start, CRC_AT)
    if crc != zlib.crc32(start[:CRC_AT]):
        raise ReadError(f"{path}: damaged: its seal's checksum doesn't match")
    version, length, digest = struct.unpack_from("<QQ32s", start, len(MAGIC))
    if version != VERSION:
        raise ReadError(f"{path}: its seal has version {version}; this reader knows {VERSION}; update the basin package")
    return length, digest


def sealed(content: bytes, kind: str) -> bytes:
    """An HDF5 file of ours, made with a user block of BYTES, with its seal in that block. `kind`: its schema's name."""
    body = content[BYTES:]
    if not body.startswith(HDF5_SIGNATURE):
        raise ValueError(f"no HDF5 file behind a user block of {BYTES} bytes")
    block = bytearray(BYTES)
    struct.pack_into("<8sQQ32sq", block, 0, MAGIC, VERSION, len(body), hashlib.sha256(body).digest(), -1)
    block[KIND_AT:LABEL_AT] = kind.encode().ljust(LABEL_AT - KIND_AT, b"\0")
    struct.pack_into("<I", block, CRC_AT, zlib.crc32(bytes(block[:CRC_AT])))
    return bytes(block) + body
