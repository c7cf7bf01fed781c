#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A plan on one GPU, by the C interface: device time of runs back to back, wall time host to host, time to the first result.

    device_run.py LIBGRAPHRT.SO PLAN INPUTS.npz [--device N] [--seconds S] [--save OUTPUTS.npz [--keep N]] [--lock FILE]
    device_run.py LIBGRAPHRT.SO --serve [--device N] [--seconds S] [--keep N] [--lock FILE] [--cpus N,N/N,N]

prints one JSON object; with --serve one for each request of bench/gpu_speed.py (serving.py), all in one process and one runtime.
Inputs in0, in1, ... lie on the GPU, outputs stay there. device_ms: many runs enqueued on one stream between two events, so that what the
host does to launch a run is hidden behind the one before, as in a CUDA graph that is replayed. wall_ms: inputs from page-locked host memory, outputs back to it.
--lock: everything on the GPU happens while FILE is locked, so that processes that share a GPU have it in turns. --save: outputs as out0, out1, ... in their order; --keep: of one
with more than N elements the first rows.
"""
import argparse
import ctypes
import json
import sys
import time

import numpy as np

import clock
import serving
from turns import leave, turn

MAX_RANK = 16
DTYPES = {1: np.float32, 2: np.uint8, 3: np.int8, 6: np.int32, 7: np.int64, 9: np.bool_, 10: np.float16, 11: np.float64}
NUMBERS = {np.dtype(t): n for n, t in DTYPES.items()}
HOST, PINNED, DEVICE = 0, 1, 2


class Tensor(ctypes.Structure):
    _fields_ = [("dtype", ctypes.c_int), ("rank", ctypes.c_int32), ("dims", ctypes.c_int64 * MAX_RANK), ("data", ctypes.c_void_p), ("memory", ctypes.c_int),
                ("device", ctypes.c_int32), ("reserved", ctypes.c_uint64 * 5)]

    def array(self, most=None):
        """Of a tensor in host memory; of one with more elements than `most`, as many rows as that are."""
        shape = tuple(self.dims[:self.rank])
        count = int(np.prod(shape, dtype=np.int64))
        if most and shape and count > most:
            shape = (max(1, most * shape[0] // count), *shape[1:])
        n = int(np.prod(shape, dtype=np.int64)) * np.dtype(DTYPES[self.dtype]).itemsize
        return np.frombuffer(ctypes.string_at(self.data, n), DTYPES[self.dtype]).reshape(shape) if n else np.zeros(shape, DTYPES[self.dtype])


class IoInfo(ctypes.Structure):
    _fields_ = [("struct_size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("kind", ctypes.c_int), ("element_kind", ctypes.c_int), ("dtype", ctypes.c_int),
                ("rank", ctypes.c_int32), ("dims", ctypes.c_int64 * MAX_RANK), ("symbols", ctypes.c_char_p * MAX_RANK), ("has_default", ctypes.c_bool)]


OUTPUT_ALLOCATOR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_size_t)


def host_tensor(array):
    t = Tensor(dtype=NUMBERS[array.dtype], rank=array.ndim, data=array.ctypes.data)
    t.dims[:array.ndim] = array.shape
    return t


class Cuda:
    """What is needed of the CUDA runtime."""

    def __init__(self, device):
        for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so"):
            try:
                self.lib = ctypes.CDLL(name)
                break
            except OSError:
                continue
        else:
            raise SystemExit("device_run: libcudart.so is not found: add its directory to LD_LIBRARY_PATH")
        self.call("cudaSetDevice", device)
        self.stream = ctypes.c_void_p()
        self.call("cudaStreamCreateWithFlags", ctypes.byref(self.stream), 1)

    def call(self, name, *args):
        code = getattr(self.lib, name)(*args)
        if code:
            raise RuntimeError(f"{name}: error {code}")

    def event(self):
        event = ctypes.c_void_p()
        self.call("cudaEventCreate", ctypes.byref(event))
        return event

    def copy(self, array):
        """Address of a copy on the device."""
        address = ctypes.c_void_p()
        self.call("cudaMalloc", ctypes.byref(address), ctypes.c_size_t(max(array.nbytes, 256)))
        self.call("cudaMemcpy", address, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes), 1)
        return address.value

    def free(self, address):
        self.call("cudaFree", ctypes.c_void_p(address))

    def wait(self):
        self.call("cudaStreamSynchronize", self.stream)

    def milliseconds(self, run, seconds):
        """Of a run, many enqueued at a time; the median of some such times."""
        begin, end, elapsed = self.event(), self.event(), ctypes.c_float()

        def measure(n):
            self.call("cudaEventRecord", begin, self.stream)
            for _ in range(n):
                run()
            self.call("cudaEventRecord", end, self.stream)
            self.call("cudaEventSynchronize", end)
            self.call("cudaEventElapsedTime", ctypes.byref(elapsed), begin, end)
            return elapsed.value / n

        return clock.back_to_back(measure, seconds)


class Session:
    """A plan on a device, with one context. `runtime`: of another session that shares it and is released later."""

    def __init__(self, library, plan, device, runtime=None):
        self.lib, self.device, self.shared = ctypes.CDLL(library), device, runtime is not None
        self.lib.grt_last_error.restype = ctypes.c_char_p
        self.lib.grt_model_input_count.restype = self.lib.grt_model_output_count.restype = ctypes.c_size_t
        self.runtime, self.model, self.session, self.context = (ctypes.c_void_p() for _ in range(4))
        self.pinned = []
        if self.shared:
            self.runtime = runtime
        else:
            self.call("grt_runtime_create", ctypes.byref(self.runtime))
        self.call("grt_model_open", self.runtime, str(plan).encode(), ctypes.byref(self.model))
        self.call("grt_session_create", self.model, *self.place(), ctypes.byref(self.session))
        self.call("grt_context_create", self.session, ctypes.byref(self.context))
        self.inputs = [self.name("grt_model_input", i) for i in range(self.lib.grt_model_input_count(self.model))]
        self.outputs = [self.name("grt_model_output", i) for i in range(self.lib.grt_model_output_count(self.model))]

    def place(self):
        """The device, and the session's options."""
        return f"cuda:{self.device}".encode(), None

    def call(self, name, *args):
        if getattr(self.lib, name)(*args):
            raise RuntimeError(f"{name}: {self.lib.grt_last_error().decode()}")

    def name(self, function, index):
        info = IoInfo(struct_size=ctypes.sizeof(IoInfo))
        self.call(function, self.model, ctypes.c_size_t(index), ctypes.byref(info))
        return info.name.decode()

    def bind(self, tensors):
        for i, name in enumerate(self.inputs):
            self.call("grt_context_set_input", self.context, ctypes.c_size_t(i), ctypes.byref(tensors[name]))

    def run(self):
        self.call("grt_context_run", self.context)

    def enqueue(self, stream):
        self.call("grt_context_run_async", self.context, stream)

    def allocate_outputs(self, allocate):
        """Let runs ask `allocate`, of a number of bytes, for device memory of outputs."""
        self.allocator = OUTPUT_ALLOCATOR(lambda user, index, tensor, size: allocate(size))
        for i in range(len(self.outputs)):
            self.call("grt_context_set_output_allocator", self.context, ctypes.c_size_t(i), self.allocator, None, DEVICE)

    def release(self):
        self.lib.grt_context_release(self.context)
        for data in self.pinned:
            self.lib.grt_session_free_host(self.session, data)
        for name in ("session", "model", *(() if self.shared else ("runtime",))):
            getattr(self.lib, f"grt_{name}_release")(getattr(self, name))

    def device_milliseconds(self, cuda, arrays, seconds):
        """Of a run whose inputs and outputs stay on the device; many are enqueued at a time."""
        tensors = {}
        for name, array in arrays.items():
            t = tensors[name] = host_tensor(array)
            t.data, t.memory, t.device = cuda.copy(array), DEVICE, self.device
        self.bind(tensors)

        for _ in range(5):
            self.enqueue(cuda.stream)
        cuda.wait()
        found = cuda.milliseconds(lambda: self.enqueue(cuda.stream), seconds)
        cuda.wait()
        for tensor in tensors.values():
            cuda.free(tensor.data)
        return found

    def tensors(self):
        """Of the last run's outputs, in order."""
        found = [Tensor() for _ in self.outputs]
        for i, t in enumerate(found):
            self.call("grt_context_get_output", self.context, ctypes.c_size_t(i), ctypes.byref(t))
        return found

    def results(self):
        return {name: t.array() for name, t in zip(self.outputs, self.tensors())}


def page_locked(session, tensor, copied=True):
    """A tensor like this one of the host, in memory that the device copies directly, and its values if they are wanted."""
    data, found = ctypes.c_void_p(), Tensor(dtype=tensor.dtype, rank=tensor.rank, dims=tensor.dims, memory=PINNED)
    n = int(np.prod(tensor.dims[:tensor.rank], dtype=np.int64)) * np.dtype(DTYPES[tensor.dtype]).itemsize
    session.call("grt_session_alloc_host", session.session, ctypes.c_size_t(max(n, 1)), ctypes.byref(data))
    found.data = data.value
    session.pinned.append(data)
    if n and copied:
        ctypes.memmove(found.data, tensor.data, n)
    return found


def bind_outputs(session, tensors):
    """None: to memory of the context."""
    for i, t in enumerate(tensors):
        session.call("grt_context_set_output", session.context, ctypes.c_size_t(i), ctypes.byref(t) if t else None)


def wall_milliseconds(session, seconds):
    """Of a run from page-locked inputs to page-locked outputs."""
    bind_outputs(session, [page_locked(session, t, copied=False) for t in session.tensors()])
    found = clock.host_to_host(session.run, seconds)
    bind_outputs(session, [None] * len(session.outputs))
    return found


def measured(session, arrays, cuda, args, save):
    """Times, and the results if they are to be saved."""
    session.bind({name: page_locked(session, host_tensor(a)) for name, a in arrays.items()})
    begin = time.perf_counter()
    session.run()
    results = session.tensors()
    first = 1e3 * (time.perf_counter() - begin)
    kept = {f"out{k}": t.array(args.keep) for k, t in enumerate(results)} if save else {}
    wall = wall_milliseconds(session, args.seconds)
    return {"device_ms": session.device_milliseconds(cuda, arrays, args.seconds), "wall_ms": wall, "first_run_ms": first}, kept


class Plans:
    """Plans one after another in one runtime. All that is done on the device is done in turns."""

    def __init__(self, args):
        self.args, self.runtime = args, ctypes.c_void_p()
        with turn(args.lock):
            self.cuda = Cuda(args.device)

    def measure(self, plan, inputs, save=None):
        given = np.load(inputs)
        arrays = {name: np.ascontiguousarray(given[name]) for name in given.files}
        with turn(self.args.lock):
            begin = time.perf_counter()
            session = Session(self.args.library, plan, self.args.device, self.runtime if self.runtime.value else None)
            load = time.perf_counter() - begin
            self.runtime, session.shared = session.runtime, True  # it lasts as long as the process
            report, kept = measured(session, {name: arrays[name] for name in session.inputs}, self.cuda, self.args, save)
            session.release()
        if save:
            np.savez(save, **kept)
        return report | {"load_ms": 1e3 * load}

    def answer(self, request, say):
        """A plan of gpu_speed.py's. `beside`: pass -> the plan without it, measured in turns with the first: with, without, with, without."""
        row = self.measure(request["plan"], request["inputs"], request.get("save"))
        for name, other in request.get("beside", {}).items():
            turns = [self.measure(path, request["inputs"])["device_ms"] for path in (request["plan"], other, request["plan"], other)]
            row.setdefault("without", {})[name] = [min(turns[::2]), min(turns[1::2])]
        say(request["key"], row)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("library")
    p.add_argument("plan", nargs="?")
    p.add_argument("inputs", nargs="?")
    p.add_argument("--serve", action="store_true")
    p.add_argument("--device", type=int, default=0)
    p.add_argument("--seconds", type=float, default=0.5)
    p.add_argument("--save")
    p.add_argument("--keep", type=int, default=1 << 40)
    p.add_argument("--lock")
    p.add_argument("--cpus", type=serving.cpus)
    args = p.parse_args()
    if args.serve:
        return serving.serve(Plans(args).answer, args.cpus)
    if not args.inputs:
        p.error("a plan and its inputs are needed, or --serve")
    print(json.dumps(Plans(args).measure(args.plan, args.inputs, args.save)), flush=True)
    leave(args.lock)
    return 0


if __name__ == "__main__":
    sys.exit(main())
