# SPDX-License-Identifier: Apache-2.0
"""graphrt.Pool: requests from any thread or coroutine, over one or many devices and models."""

import asyncio
import os
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from . import _core


class Pool:
    """Contexts of one or more sessions of a model, fed from one queue: requests go to the device that has the fewest, and copies of one
    overlap the computing of another. Any number of threads may use one. Further lanes (add) have other models, or other clients.

    Args:
        sessions: a graphrt.Session or several, of one graphrt.Model: lane 0. None: there is no lane yet (add, add_processes).
        contexts: runs at once of each session, 1 to 64.
        queue: requests that wait in the library for a context; 0: as many as there are contexts, times max_batch. More wait outside it, in order.
        share: of the devices, in proportion to the other lanes' while all have requests of equal priority; 0: 1.
        max_batch: requests are put together to batches of at most so many rows; 0: each runs by itself. A row is what one index of the first
            dim has; that rows do not depend on each other is yours to know.
        max_delay: seconds that a batch waits for more rows.
        padding: rows that a batch gets that is not full: "power of two", "full" or "none".
        device_runs: requests or batches that are at work on one device at a time, of all lanes; 0: as many as the lane with the most
            contexts there has, and on devices with memory of their own one more, for a lane that has used least of its share.
    Raises: InvalidArgument, OutOfMemory, DeviceError.
    """

    def __init__(self, sessions=None, *, contexts=2, queue=0, share=0.0, max_batch=0, max_delay=0.0, padding="power of two", device_runs=0):
        self._pool = _core.Pool(device_runs)
        self._threads = []
        self._lock = threading.Lock()
        if sessions is not None:
            self.add(sessions, contexts=contexts, queue=queue, share=share, max_batch=max_batch, max_delay=max_delay, padding=padding)

    def add(self, sessions, *, contexts=2, queue=0, share=0.0, max_batch=0, max_delay=0.0, padding="power of two"):
        """Add a lane over a session or several of one model; arguments as Pool has them.

        Returns: its number, for `lane` of the other methods.
        """
        sessions = [sessions] if isinstance(sessions, _core.Session) else list(sessions)
        lane = self._pool.add(sessions, contexts=contexts, queue=queue, share=share, max_batch=max_batch, max_delay=max_delay, padding=padding)
        return self._know(lane, len(sessions) * contexts, queue, max_batch)

    def add_processes(self, model, devices=("cpu",), *, contexts=1, queue=0, share=0.0, max_batch=0, max_delay=0.0, padding="power of two", threads=0,
                      fallback=None, memory_limit=0, priority=0, multiprocessors=0, program=None, custom_ops=None, start_timeout=0.0, grace=0.0,
                      most_failures=0):
        """Add a lane whose sessions are each in a process of its own, which is replaced when it ends or loses its device: this process opens
        none of the devices. Inputs and outputs are arrays of numbers in memory of the host; there is no state.

        Args:
            model: a graphrt.Model.
            devices: one for each process: "cuda:0".
            threads, fallback, memory_limit, priority, multiprocessors: of each session, as graphrt.Session has them.
            program: what is started; None: the package's own graphrun.
            custom_ops: a shared object with custom operators, which each process loads.
            start_timeout: seconds until a session is ready; 0: 120.
            grace: seconds after which a process is ended that has not answered a request that was cancelled or late; 0: 2.
            most_failures: so many starts in a row that fail are the end of that session; 0: 3.
        Returns: the number of the lane.
        Raises: what graphrt.Session raises, in the process; FileError if it cannot be started.
        """
        if program is None:
            own = Path(__file__).parent / "bin" / "graphrun"
            program = own if own.exists() else None
        program, custom_ops = (None if path is None else os.fspath(path) for path in (program, custom_ops))
        processes = {"threads": threads, "fallback": fallback, "memory_limit": memory_limit, "priority": priority,
                     "multiprocessors": multiprocessors, "program": program, "custom_ops": custom_ops, "start_timeout": start_timeout, "grace": grace,
                     "most_failures": most_failures}
        lane = self._pool.add_processes(model, list(devices), processes, contexts=contexts, queue=queue, share=share, max_batch=max_batch,
                                        max_delay=max_delay, padding=padding)
        return self._know(lane, len(devices) * contexts, queue, max_batch)

    def _know(self, lane, contexts, queue, max_batch):
        # Each thread waits for one request without the GIL; so many keep all contexts and the queue busy.
        most = contexts * max(1, max_batch)
        threads = ThreadPoolExecutor(min(most + (queue or most), 256), thread_name_prefix=f"graphrt-pool-{lane}")
        with self._lock:
            self._threads += [None] * (lane + 1 - len(self._threads))
            self._threads[lane] = threads
        return lane

    def _executor(self, lane):
        if not 0 <= lane < len(self._threads) or self._threads[lane] is None:
            raise IndexError(f"the pool has no lane {lane}, but {len(self._threads)} of them")
        return self._threads[lane]

    def submit(self, inputs, *, timeout=None, stop=None, priority=0, lane=0, state=None) -> "Future[dict]":
        """Queue a run and return at once. Inputs are as in Session.run, and must not change until the future is done; its result is a
        dict of outputs, its exception what Session.run raises. future.add_done_callback calls a function then.

        Args:
            timeout: seconds from now until the request ends with DeadlineExceeded, waiting or running; None: no limit.
            stop: a graphrt.Stop that may end it with Cancelled.
            priority: of those that wait in the library, higher ones are served first.
            lane: its number.
            state: a graphrt.State that the run has; its inputs are not given, its outputs not returned. Requests with one state run one at a time,
                in the order of submission; this waits while the library's queue is full, so that the order is kept.
        """
        if state is not None:
            return self._call(inputs, timeout, stop, priority, lane, state, True)
        begin = time.monotonic()
        return self._executor(lane).submit(self._run, inputs, timeout, stop, priority, lane, begin)

    def try_submit(self, inputs, *, timeout=None, stop=None, priority=0, lane=0, state=None) -> "Future[dict]":
        """submit, without a thread that waits: the future is done by a thread of the pool, which serves nobody while callbacks of the
        future run. They may submit with try_submit.

        Raises: Busy where the library's queue is full.
        """
        return self._call(inputs, timeout, stop, priority, lane, state, False)

    def _call(self, inputs, timeout, stop, priority, lane, state, wait):
        future = Future()
        future.set_running_or_notify_cancel()

        def done(outputs, error):
            if error is None:
                future.set_result(outputs)
            else:
                future.set_exception(error)

        self._pool.submit(inputs, timeout, stop, priority, lane, state, wait, done)
        return future

    def run(self, inputs, *, timeout=None, stop=None, priority=0, lane=0, state=None):
        """Run and wait: Session.run for many threads. Ctrl-C ends it where the main thread waits."""
        return self._pool.run(inputs, timeout, stop, priority, threading.current_thread() is threading.main_thread(), lane, state)

    async def run_async(self, inputs, *, timeout=None, priority=0, lane=0, state=None):
        """The same for coroutines: the event loop goes on meanwhile. A coroutine that is cancelled cancels its request, too, which ends before
        its next step."""
        stop = _core.Stop()
        try:
            return await asyncio.wrap_future(self.submit(inputs, timeout=timeout, stop=stop, priority=priority, lane=lane, state=state))
        except asyncio.CancelledError:
            stop.set()
            raise

    def map(self, inputs, *, lane=0):
        """Results for an iterable of inputs, in its order."""
        return self._executor(lane).map(lambda item: self._pool.run(item, None, None, 0, False, lane, None), inputs)

    def _run(self, inputs, timeout, stop, priority, lane, begin):
        if timeout is not None:  # what was waited for a thread counts
            timeout = max(0.0, timeout - (time.monotonic() - begin))
        return self._pool.run(inputs, timeout, stop, priority, False, lane, None)

    def stats(self, lane=0):
        """Counts of a lane since it was made: submitted, succeeded, failed, cancelled, late, refused (Busy), batches, batch_rows, padded_rows; and
        now: waiting, running."""
        return self._pool.stats(lane)

    def times(self, phase="total", lane=0):
        """Times of a lane's requests that succeeded, in a phase: "queue", "copy in", "run", "copy out" or "total". count, sum_ms, max_ms,
        percentiles (at most a quarter too high), and buckets: a list of (upper limit in ms, count) without the empty ones."""
        return self._pool.times(phase, lane)

    def replace(self, index, session, *, lane=0):
        """Let `session`, of the lane's model, serve in place of number `index`, whose device may have failed, while the pool serves."""
        self._pool.replace(index, session, lane)

    def process(self, index=0, *, lane=0):
        """About a process of a lane of processes: pid (0: one is being started), started (how many became ready), lost."""
        return self._pool.process(index, lane)

    def cancel(self):
        """Cancel all requests that the library has."""
        self._pool.cancel()

    def drain(self, timeout=None):
        """Wait until the requests that the library has are done. Raises Busy if some are not after `timeout` seconds."""
        self._pool.drain(timeout)

    def shutdown(self, timeout=None):
        """Take no more requests (Cancelled), and cancel what is not done after `timeout` seconds, which raises DeadlineExceeded."""
        self._pool.shutdown(timeout)

    def close(self):
        """Finish what was submitted. More cannot be."""
        for threads in self._threads:
            if threads is not None:
                threads.shutdown()
        self._pool.drain(None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
