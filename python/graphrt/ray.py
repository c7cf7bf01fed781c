# SPDX-License-Identifier: Apache-2.0
"""graphrt in a Ray cluster: Scorer for Ray Data's map_batches, deployment() for Ray Serve.

A model is a path that every machine of the cluster can read. Compile it to a plan first (graphrt.compile): all workers of a machine map
the same file, so its weights are in that machine's memory once. Needs the package `ray`; importing this module does not.
"""

import asyncio

import numpy as np

from ._core import Session
from ._errors import InvalidArgument

__all__ = ["Scorer", "deployment", "session"]


def session(model, *, device=None, threads=None):
    """A graphrt.Session with what Ray has given to the calling actor or task: its GPU, if it has one (num_gpus; the one that is visible
    to it), else the CPU with as many threads as it has CPUs, at least one.

    Args:
        model: path of a plan or an ONNX file.
        device, threads: as in graphrt.Session, in place of Ray's.
    Raises: as graphrt.Session.
    """
    import ray

    assigned = ray.get_runtime_context().get_assigned_resources()
    device = device or ("cuda:0" if assigned.get("GPU", 0) > 0 else "cpu")
    return Session(model, device, threads=threads or max(1, int(assigned.get("CPU", 1))))


class Scorer:
    """For ray.data.Dataset.map_batches: columns of the names of the model's inputs go in, columns of the names of its outputs are added.

        dataset.map_batches(graphrt.ray.Scorer, fn_constructor_kwargs={"model": "m.grt"}, batch_size=64, concurrency=4, num_cpus=1)

    Args:
        model, device, threads: as in session().
        keep: columns of the batch that the result has, too; None: all but the inputs.
    Raises: as graphrt.Session and graphrt.Session.run; InvalidArgument if a batch has no column for an input.
    """

    def __init__(self, model, *, device=None, threads=None, keep=None):
        self._session = session(model, device=device, threads=threads)
        self._inputs = {i.name: i for i in self._session.inputs}
        self._keep = keep

    def __call__(self, batch):
        """The outputs of a batch of columns by name, as columns."""
        missing = [name for name, info in self._inputs.items() if name not in batch and not info.has_default]
        if missing:
            raise InvalidArgument(f"the batch has no column {', '.join(missing)}, but {', '.join(batch)}")
        outputs = self._session.run({name: np.ascontiguousarray(batch[name]) for name in self._inputs if name in batch})
        kept = self._keep if self._keep is not None else [name for name in batch if name not in self._inputs]
        return {**{name: batch[name] for name in kept}, **outputs}


def _fit(a, b):
    """True if two requests can be rows of one run."""
    return a.keys() == b.keys() and all(a[k].ndim and a[k].shape[1:] == b[k].shape[1:] and a[k].dtype == b[k].dtype for k in a)


def _groups(requests):
    """Lists of positions whose requests fit each other."""
    groups = []
    for i, request in enumerate(requests):
        for group in groups:
            if _fit(requests[group[0]], request):
                group.append(i)
                break
        else:
            groups.append([i])
    return groups


def _run_group(session, requests):
    """Results of requests that fit each other: dicts, or the exception of the one at fault."""
    if len(requests) > 1:
        try:
            outputs = session.run({name: np.concatenate([r[name] for r in requests]) for name in requests[0]})
            rows = [len(next(iter(r.values()))) for r in requests]
            if all(o.ndim and len(o) == sum(rows) for o in outputs.values()):
                at = np.cumsum(rows)[:-1]
                parts = {name: np.split(o, at) for name, o in outputs.items()}
                return [{name: parts[name][i] for name in parts} for i in range(len(requests))]
        except Exception:  # one of them is at fault: each runs alone
            pass
    results = []
    for request in requests:
        try:
            results.append(session.run(request))
        except Exception as e:
            results.append(e)
    return results


def _run_requests(session, requests):
    results = [None] * len(requests)
    for group in _groups(requests):
        for i, result in zip(group, _run_group(session, [requests[i] for i in group])):
            results[i] = result
    return results


def deployment(model, *, device=None, threads=None, max_batch_size=8, batch_wait_timeout_s=0.002, **options):
    """A deployment of Ray Serve. Requests are dicts of arrays whose first dim is the batch; over HTTP, JSON of the same with lists. Those
    that arrive together, and fit each other, are one run; if it fails, each runs alone, so that only the one at fault fails.

        handle = ray.serve.run(graphrt.ray.deployment("m.grt", num_replicas=2).bind())
        outputs = handle.remote({"image": image}).result()

    Args:
        model, device, threads: as in session().
        max_batch_size: requests of one run. 1: none wait for others.
        batch_wait_timeout_s: the longest that a request waits for others.
        options: of ray.serve.deployment: name, num_replicas, autoscaling_config, ray_actor_options={"num_gpus": 0.5}, ...
    Raises: requests raise what graphrt.Session.run raises; over HTTP that is status 400 with the message.
    """
    from ray import serve

    class Graphrt:
        def __init__(self):
            self._session = session(model, device=device, threads=threads)
            self._dtypes = {i.name: i.dtype for i in self._session.inputs}

        @serve.batch(max_batch_size=max_batch_size, batch_wait_timeout_s=batch_wait_timeout_s)
        async def _run(self, requests):
            return [(r,) for r in await asyncio.to_thread(_run_requests, self._session, requests)]

        async def predict(self, inputs):
            (result,) = await self._run({name: np.asarray(value) for name, value in inputs.items()})
            if isinstance(result, Exception):
                raise result
            return result

        async def __call__(self, request):
            if isinstance(request, dict):
                return await self.predict(request)
            from starlette.responses import JSONResponse

            try:
                inputs = {name: np.asarray(value, self._dtypes.get(name)) for name, value in (await request.json()).items()}
                outputs = await self.predict(inputs)
            except (InvalidArgument, ValueError, TypeError, AttributeError) as e:
                return JSONResponse({"error": str(e)}, status_code=400)
            return JSONResponse({name: value.tolist() for name, value in outputs.items()})

    options.setdefault("name", "graphrt")
    options.setdefault("max_ongoing_requests", 4 * max_batch_size)
    return serve.deployment(**options)(Graphrt)
