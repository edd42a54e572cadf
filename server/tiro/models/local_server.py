"""The program that serves one local model, run in a process of its own and never imported.

One JSON line on stdin tells it what to do, one JSON line on stdout says where it listens.
Its stdin is its life line: when the other end closes, however its owner died, it ends at once.
"""

import ctypes
import json
import os
import signal
import sys
import threading
import time
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
PARENT_POLL_SECONDS = 0.5
LAST_WORDS_SECONDS = 0.5


def main() -> NoReturn:
    """Serve until the life line breaks."""
    answers = os.dup(1)
    os.dup2(2, 1)  # the library prints what it likes; our line stays alone on the real stdout
    wanted = json.loads(sys.stdin.buffer.readline())
    die_with(wanted["parent"])
    threading.Thread(target=wait_for_the_end, args=(wanted["parent"],), daemon=True).start()
    try:
        server = serve(wanted)
    except Exception as error:
        # The library says why on stderr, from a thread of its own that must come to it first. A
        # normal exit would stumble over the reading thread.
        time.sleep(LAST_WORDS_SECONDS)
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(1)
    os.write(answers, json.dumps({"url": server.listening_address}).encode() + b"\n")
    while True:
        time.sleep(3600)


def serve(wanted: dict[str, Any]) -> Any:
    """Load the model and listen; the library does both before it returns."""
    import xllamacpp  # the optional extra; a driver

    params = xllamacpp.CommonParams()
    params.model.path = wanted["weights"]
    params.model_alias = {wanted["alias"]}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [wanted["api_key"]]
    params.ui = False
    params.endpoint_props = False
    params.verbosity = 1
    # Two requests at once, each with a window of its own: a shared one kills both when it is full.
    params.n_parallel = wanted["parallel"]
    params.kv_unified = False
    params.n_ctx = wanted["context_window"] * wanted["parallel"]
    # Small batches, since a request that is taken back ends between two of them.
    params.n_batch = 256
    params.n_ubatch = 256
    params.cache_ram_mib = 512
    params.cpuparams.n_threads = wanted["threads"]
    params.cpuparams_batch.n_threads = wanted["threads"]
    params.sampling.temp = 0.2
    if wanted["chat_template"]:
        params.chat_template = wanted["chat_template"]
    return xllamacpp.Server(params)


def die_with(parent: int) -> None:
    """On Linux the kernel sees to it, also while loading keeps every thread of this one waiting."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if is_orphan(parent):
        os._exit(0)


def wait_for_the_end(parent: int) -> None:
    """End this process when the life line breaks or the parent is another."""
    threading.Thread(target=end_with_stdin, daemon=True).start()
    while not is_orphan(parent):
        time.sleep(PARENT_POLL_SECONDS)
    os._exit(0)


def end_with_stdin() -> None:
    """Block until stdin ends, then end everything, whatever is being computed."""
    while os.read(0, 4096):
        pass
    os._exit(0)


def is_orphan(parent: int) -> bool:
    """Whether the process that started this one is gone; Windows keeps its number."""
    return os.name == "posix" and os.getppid() != parent


if __name__ == "__main__":
    main()
