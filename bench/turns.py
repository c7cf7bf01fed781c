# SPDX-License-Identifier: Apache-2.0
"""Processes that share a device: for one of them at a time. Locks of files, so that a process that is stopped gives back what it held."""
import contextlib
import fcntl
import os
import resource
import time

PATIENCE = 3  # seconds that those who share let others go first
LATE = 6  # that those who are late do
held = {}  # path -> this process is in its turn
total = waited = 0.0  # seconds that this process had turns, and waited for them
cpus = None  # (processors for turns, processors otherwise), if they are apart


@contextlib.contextmanager
def turn(path, shared=False, late=False):
    """What `path` stands for, for oneself; within such a turn, again. Shared: with others that share it, such as copies that disturb measurements but not each other; these gather
    while somebody waits for a turn of his own, so that a turn does not wait for one copy after another. Late: of those who are, one at a time, and others go first for a while.
    Who has a turn must not fork: a child would have it, too."""
    global total, waited
    path = str(path or "")
    if not path or held.get(path):
        yield
        return
    asked = time.monotonic()
    with open(path, "w") as file, open(f"{path}.late", "w") as others:
        share(file, path) if shared else have_late(file, others, path) if late else have(file, path)
        held[path], begin = True, time.monotonic()
        waited += begin - asked
        keep_to(0)
        try:
            yield
        finally:
            keep_to(1)
            total += time.monotonic() - begin
            del held[path]


def spent():
    """Seconds that this process had turns, and that it waited for them."""
    return total, waited


def since(before):
    """What was spent since then, for reports."""
    return {"turn_s": round(total - before[0], 2), "wait_s": round(waited - before[1], 2)}


def keep_to(which):
    """Who has a turn is not to wait for a processor."""
    if cpus:
        os.sched_setaffinity(0, cpus[which])


def have(file, path):
    with open(f"{path}.wanted", "w") as wanted:
        fcntl.flock(wanted, fcntl.LOCK_SH)
        fcntl.flock(file, fcntl.LOCK_EX)


def have_late(file, others, path):
    fcntl.flock(others, fcntl.LOCK_EX)  # for as long as the turn lasts, so that others have theirs between two of these
    end = time.monotonic() + LATE
    while time.monotonic() < end:
        if not is_wanted(path) and locked(file):
            return
        time.sleep(0.02)
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


def locked(file):
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    except BlockingIOError:
        return False
