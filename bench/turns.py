# SPDX-License-Identifier: Apache-2.0
"""Processes that share a machine: a thing for one of them at a time, or for so many. Locks of files, so that a process that is stopped gives back what it held."""
import contextlib
import fcntl
import os
import resource
import time

PATIENCE = 3  # seconds that those who share let others go first
held = {}  # path -> how deep this process is in its turn


@contextlib.contextmanager
def turn(path, shared=False):
    """What `path` stands for, for oneself; within such a turn, again. Shared: with others that share it, such as copies that disturb measurements but not each other; these gather
    while somebody waits for a turn of his own, so that a turn does not wait for one copy after another. Who has a turn must not fork: a child would have it, too."""
    path = str(path or "")
    if not path or held.get(path):
        yield
        return
    with open(path, "w") as file:
        share(file, path) if shared else have(file, path)
        held[path] = True
        try:
            yield
        finally:
            del held[path]


def have(file, path):
    with open(f"{path}.wanted", "w") as wanted:
        fcntl.flock(wanted, fcntl.LOCK_SH)
        fcntl.flock(file, fcntl.LOCK_EX)


def share(file, path):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end and is_wanted(path):
        time.sleep(0.05)
    fcntl.flock(file, fcntl.LOCK_SH)


def is_wanted(path):
    with open(f"{path}.wanted", "w") as wanted:
        return not locked(wanted)


def leave(path):
    """Shares what `path` stands for until this process has ended, as freeing what it has on a device disturbs, too."""
    if path:
        with open(path, "w") as file:
            share(file, str(path))
            most = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
            fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, min(900, most - 1) if most > 0 else 900)  # closed behind the device's files


@contextlib.contextmanager
def place(directory, name, count, nice=0):
    """One of `count` places; the process is as nice from then on. Who holds one must not fork: a child would hold it, too."""
    with contextlib.ExitStack() as stack:
        files = [stack.enter_context(open(os.path.join(directory, f"{name}{k}.place"), "w")) for k in range(count)]
        while not any(locked(file) for file in files):
            time.sleep(0.02)
        os.nice(nice)
        yield


def locked(file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
