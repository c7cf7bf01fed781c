# SPDX-License-Identifier: Apache-2.0
"""graphrt.Pool: requests from any thread or coroutine, over one or many devices."""

import asyncio
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor

from . import _core


class Pool:
    """Contexts of one or more sessions of a model, fed from one queue: requests go to the device that has the fewest, and copies of one
    overlap the computing of another. Any number of threads may use one.

    Args:
        sessions: a graphrt.Session or several, of one graphrt.Model.
        contexts: runs at once of each session, 1 to 64.
        queue: requests that wait in the library for a context; 0: as many as there are contexts. More wait outside it, in order.
    Raises: InvalidArgument, OutOfMemory, DeviceError.
    """

    def __init__(self, sessions, *, contexts=2, queue=0):
        sessions = [sessions] if isinstance(sessions, _core.Session) else list(sessions)
        self._pool = _core.Pool(sessions, contexts, queue)
        # Each waits for one request without the GIL; so many keep all contexts and the queue busy.
        in_flight = len(sessions) * contexts
        self._threads = ThreadPoolExecutor(in_flight + (queue or in_flight), thread_name_prefix="graphrt-pool")

    def submit(self, inputs, *, timeout=None, stop=None, priority=0) -> "Future[dict]":
        """Queue a run and return at once. Inputs are as in Session.run, and must not change until the future is done; its result is a
        dict of outputs, its exception what Session.run raises.

        Args:
            timeout: seconds from now until the request ends with DeadlineExceeded, waiting or running; None: no limit.
            stop: a graphrt.Stop that may end it with Cancelled.
            priority: of those that wait in the library, higher ones are served first.
        """
        begin = time.monotonic()
        return self._threads.submit(self._run, inputs, timeout, stop, priority, begin)

    def run(self, inputs, *, timeout=None, stop=None, priority=0):
        """Run and wait: Session.run for many threads. Ctrl-C ends it where the main thread waits."""
        return self._pool.run(inputs, timeout, stop, priority, threading.current_thread() is threading.main_thread())

    async def run_async(self, inputs, *, timeout=None, priority=0):
        """The same for coroutines: the event loop goes on meanwhile. A coroutine that is cancelled cancels its request, too, which ends before
        its next step."""
        stop = _core.Stop()
        try:
            return await asyncio.wrap_future(self.submit(inputs, timeout=timeout, stop=stop, priority=priority))
        except asyncio.CancelledError:
            stop.set()
            raise

    def map(self, inputs):
        """Results for an iterable of inputs, in its order."""
        return self._threads.map(lambda item: self._pool.run(item, None, None, 0, False), inputs)

    def _run(self, inputs, timeout, stop, priority, begin):
        if timeout is not None:  # what was waited for a thread counts
            timeout = max(0.0, timeout - (time.monotonic() - begin))
        return self._pool.run(inputs, timeout, stop, priority, False)

    def close(self):
        """Finish what was submitted. More cannot be."""
        self._threads.shutdown()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
