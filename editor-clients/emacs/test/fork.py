"""A `tiro serve` that costs a fork, for the many tests that start one.

`python fork.py --keep SOCKET` imports Tiro once and forks a server for each order, until its input
ends. `python fork.py SOCKET` looks to its parent like the server: it orders one with its own
descriptors, environment and working directory, and ends as that ends. A signal reaches only this
stand-in, so tests that kill the server start the real program.
"""

import json
import os
import socket
import sys
from contextlib import suppress


def order(path: str) -> int:
    """Have a server forked that speaks with our parent; its exit code."""
    with socket.socket(socket.AF_UNIX) as channel:
        channel.connect(path)
        wanted = json.dumps({"env": dict(os.environ), "cwd": os.getcwd()}).encode()
        socket.send_fds(channel, [len(wanted).to_bytes(4)], [0, 1, 2])
        channel.sendall(wanted)
        for descriptor in (0, 1, 2):  # the server alone holds them now
            os.close(descriptor)
        return int(channel.recv(16) or b"1")


def keep(path: str) -> None:
    """Fork servers until our input ends."""
    import threading  # the stand-in has to start fast
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    from tests.e2e.warm import WarmProcess

    warm, ordering = WarmProcess(os.environ["PYTHONPATH"]), threading.Lock()

    def serve(channel: socket.socket) -> None:
        with channel, suppress(OSError):
            size, given, _, _ = socket.recv_fds(channel, 4, 3)
            wanted = json.loads(_exactly(channel, int.from_bytes(size)))
            with ordering:
                pid = warm.begin(("serve",), wanted["env"], Path(wanted["cwd"]), tuple(given))
            for descriptor in given:
                os.close(descriptor)
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            channel.sendall(str(code if code >= 0 else 128 - code).encode())

    def accept(listening: socket.socket) -> None:
        while True:
            channel, _ = listening.accept()
            threading.Thread(target=serve, args=(channel,), daemon=True).start()

    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    threading.Thread(target=accept, args=(listening,), daemon=True).start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
    warm.close()


def _exactly(channel: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        piece = channel.recv(size - len(read))
        if not piece:
            raise OSError("the order was cut off")
        read += piece
    return read


if __name__ == "__main__":
    if sys.argv[1] == "--keep":
        keep(sys.argv[2])
    else:
        os._exit(order(sys.argv[1]))
