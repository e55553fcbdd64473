"""Calls of the program as forks of one process that has loaded its libraries already (tests/fork_server): a start costs 0.2 s less."""

import array
import atexit
import contextlib
import os
import signal
import socket
import subprocess
import threading


def _ignored():
    """Signals that a process executed from here would ignore, as a mask; Popen gives these two their defaults."""
    numbers = set(range(1, 32)) - {signal.SIGPIPE, signal.SIGXFSZ}
    return sum(1 << (number - 1) for number in numbers if signal.getsignal(number) == signal.SIG_IGN)


class ForkServer:
    """One call at a time. A call that is interrupted ends the server, and the next begins another."""

    def __init__(self, program, library, environment):
        self._lock = threading.Lock()
        self._begin = lambda: self._start(program, library, environment)
        self._begin()
        atexit.register(self.close)

    def _start(self, program, library, environment):
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            variables = dict(environment, LD_PRELOAD=library, FORK_SERVER_SOCKET=str(theirs.fileno()))
            self.process = subprocess.Popen([program], env=variables, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)

    def close(self):
        self._socket.close()
        self.process.kill()  # a process that this one forked may hold the socket open
        self.process.wait()

    def run(self, words, environment, cwd, timeout):
        """As subprocess.run(words, env=environment, cwd=cwd, capture_output=True, text=True, errors="replace", timeout=timeout)."""
        fields = [str(len(words)), str(_ignored()), *words, *(f"{name}={value}" for name, value in environment.items())]
        folder = os.open(cwd or ".", os.O_RDONLY | os.O_DIRECTORY)
        files = [os.memfd_create(name) for name in ("output", "error", "request")]
        try:
            os.write(files[2], b"".join(os.fsencode(field) + b"\0" for field in fields))
            with self._lock:
                status = self._status(array.array("i", [folder, 0, *files]), words, timeout)
            out, error = (self._text(file) for file in files[:2])
        finally:
            for file in (folder, *files):
                os.close(file)
        return subprocess.CompletedProcess(words, os.waitstatus_to_exitcode(status), out, error)

    def _status(self, descriptors, words, timeout):
        child = 0
        try:
            socket.send_fds(self._socket, [os.getpid().to_bytes(4, "little")], descriptors)
            child = self._answer()
            self._socket.settimeout(timeout)
            status = self._answer()
            self._socket.settimeout(None)
            return status
        except BaseException as error:  # what the server still has to say would be taken for the next call's answer
            with contextlib.suppress(ProcessLookupError):
                if child > 0:
                    os.kill(child, signal.SIGKILL)
            self.close()
            self._begin()
            if isinstance(error, TimeoutError):
                raise subprocess.TimeoutExpired(words, timeout) from None
            raise

    def _answer(self):
        answer = self._socket.recv(4)
        if not answer:
            raise RuntimeError("the fork server has ended")
        return int.from_bytes(answer, "little", signed=True)

    @staticmethod
    def _text(file):
        size = os.fstat(file).st_size
        return os.pread(file, size, 0).decode(errors="replace").replace("\r\n", "\n").replace("\r", "\n")
