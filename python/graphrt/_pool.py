# SPDX-License-Identifier: Apache-2.0
"""graphrt.Pool: requests from any thread or coroutine, over one or many devices."""

import asyncio
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

    def submit(self, inputs) -> "Future[dict]":
        """Queue a run and return at once. Inputs are as in Session.run, and must not change until the future is done; its result is a
        dict of outputs, its exception what Session.run raises."""
        return self._threads.submit(self._pool.run, inputs)

    def run(self, inputs):
        """Run and wait: Session.run for many threads."""
        return self._pool.run(inputs)

    async def run_async(self, inputs):
        """The same for coroutines: the event loop goes on meanwhile. A coroutine that is cancelled gives up a request that still waits;
        one that runs already is finished and dropped."""
        return await asyncio.wrap_future(self.submit(inputs))

    def map(self, inputs):
        """Results for an iterable of inputs, in its order."""
        return self._threads.map(self._pool.run, inputs)

    def close(self):
        """Finish what was submitted. More cannot be."""
        self._threads.shutdown()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
