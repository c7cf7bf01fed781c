# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Iterable, Sequence
import os
from typing import Any

import graphrt._types


STATUSES: tuple = ...

def version() -> str:
    """Version of the library that is running."""

class Pointer:
    """Memory that is known by its address alone. Nothing keeps it alive."""

    def __init__(self, address: int, dtype: int, shape: Sequence[int], device: int = ...) -> None:
        """
        A dense tensor at an address: dtype is ONNX's number, device a CUDA device's or -1 for the host.
        """

class Model:
    """
    A compiled model: a plan that was opened, or an ONNX model compiled in memory. Immutable; any number of sessions and
    threads may use one.
    """

    def __init__(self, source: str | os.PathLike | bytes, *, target: str = 'cpu', **options: Any) -> None:
        """
        Open a plan (.grt) or compile an ONNX model; the content says which it is.

        Args:
            source: path, or the file's bytes (of an ONNX model with external data: with external_data, too).
            target: kind of device that an ONNX model is compiled for: "cpu", "cuda".
            **options: as graphrt.compile has them, without what is about the plan's file.
        Raises: FileError, InvalidModel, InvalidPlan, Unsupported, Untrusted, DeviceError.
        """

    def __repr__(self) -> str: ...

    @property
    def inputs(self) -> list[graphrt._types.ValueInfo]:
        """The inputs, in the model's order."""

    @property
    def outputs(self) -> list[graphrt._types.ValueInfo]:
        """The outputs, in the model's order."""

    @property
    def info(self) -> dict[str, Any]:
        """
        Figures: nodes, steps, parameters, weights_bytes, arena_bytes, flops, producer, opset, target, options, ...
        Sizes in bytes; flops and arena_bytes at the default shapes (unknown dims taken as 1).
        """

    @property
    def metadata(self) -> dict[str, Any]:
        """
        What the ONNX model says of itself, which plans keep: producer_name, producer_version, domain, description, graph_name,
        graph_description, model_version, ir_version, and entries, a dict of its metadata_props. "" and 0 where it says nothing.
        """

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The executable steps in order: op, name (source nodes), detail, flops."""

    def predict_memory(self, device: str = 'cpu', *, threads: int = 0, contexts: int = 1, fallback: str | None = None, shapes: dict[str, Sequence[int]] | None = None) -> dict[str, Any]:
        """
        Bytes that a session and so many contexts will have after their first run with inputs of these shapes, before anything of it is
        loaded: what Session.memory has, and process_bytes, of all of the process or GPU. total_bytes is a memory_limit that is enough.
        """

    @property
    def phases(self) -> list[dict[str, Any]]:
        """What opening did and when: name, begin_ms, end_ms."""

class Stop:
    """
    Ends runs and requests early, from any thread. Give one to `stop` of Session.run or Pool.submit; to as many
    as should end together.
    """

    def __init__(self) -> None: ...

    def set(self) -> None:
        """
        End what was given this: runs in progress raise Cancelled before their next step, waiting requests at once, and those
        that begin later do not begin. It stays set. Does not wait.
        """

    def is_set(self) -> bool:
        """True after set()."""

class State:
    """
    Outputs of one run that are inputs of the next, such as the rows of a recurrent model: they stay on the device. Give one to
    `state` of Session.run, a run at a time; each stream has its own.
    """

    def __init__(self, session: Session, pairs: dict[str, str] | None = None, initial: dict[str, Any] | None = None, *, in_place: bool = False) -> None:
        """
        Args:
            session: that it is for, with the other sessions of its model on that device.
            pairs: inputs by the outputs that they get their content from; None: those that the model declares (graphc optimize --state).
            initial: arrays by input for the first run; others begin with zeros, where their dims are fixed.
            in_place: outputs are written over inputs where the model's steps allow it. A run that fails leaves no content then.
        Raises: InvalidArgument (names, dtypes, an unknown size), OutOfMemory.
        """

    def reset(self) -> None:
        """Everything back to the initial content."""

    def save(self) -> dict[str, Any]:
        """The content by input, as new arrays."""

    def restore(self, content: dict[str, Any]) -> None:
        """Make arrays by input the content, of any dims that the input takes."""

    def copy_from(self, other: State) -> None:
        """
        Take the content of a state with the same pairs, of any session of the model: a fork of a stream, or a move to another device.
        """

class Session:
    """
    A model on a device, ready to run. Any number of threads may run it at once: each run in flight has a context of its
    own, which is kept for the next one. The GIL is free while a model is opened, made ready and run.
    """

    def __init__(self, model: str | os.PathLike | bytes | Model, device: str = 'cpu', *, threads: int = 0, fallback: str | None = None, memory_limit: int = 0, priority: int = 0, multiprocessors: int = 0, compile: str | None = None, **options: Any) -> None:
        """
        Make a model ready on a device.

        Args:
            model: path of a plan or ONNX model, its bytes, or a graphrt.Model.
            device: "cpu", "cuda:0", ...
            threads: CPU threads of one operator, at most 1024; 0: one per physical core. With several Python threads that run at
                once, 1 is best.
            fallback: "cpu": ops that the device lacks run there; None: they are an error that lists them.
            memory_limit: bytes of the device's memory that it may have, on the CPU of the host's: weights, activations, workspaces; what
                goes beyond raises OutOfMemory. 0: none. Model.predict_memory says what is needed.
            priority: of its streams on a GPU, 0 to 5: higher ones go first.
            multiprocessors: of the GPU, to compute on these alone, beside sessions that have others; 0: all.
            compile: when kernels are generated that neither the plan nor the cache has: "background", while runs interpret them,
                "first", so that nothing changes later, or "never". None: what GRAPHRT_COMPILE says, else "background".
            **options: for ONNX models, as graphrt.compile has them.
        Raises: what graphrt.Model raises; DeviceError (names the devices that exist), Unsupported (lists every op without a
            kernel), OutOfMemory.
        """

    def run(self, inputs: graphrt._types.Inputs, outputs: Iterable[str] | None = None, into: dict[str, Any] | None = None, *, timeout: float | None = None, stop: Stop | None = None, stream: Any = None, state: State | None = None) -> dict[str, Any]:
        """
        Run the model.

        Args:
            inputs: a dict by name, a list or tuple in the model's order, or the array itself where there is one input. Arrays are
                NumPy's or anything with the buffer protocol or DLPack (torch, JAX, CuPy). Their memory is used where it is if it is
                dense, row-major and aligned, else a copy is. Dtypes must be the model's: only lists and numbers, which have none,
                are converted. Strings: arrays of str, bytes or objects. Sequences: lists. Maps: dicts. Optionals: None or the value.
                Inputs with a default may be left out.
            outputs: names of those that are wanted; None: all.
            into: arrays by name that outputs are written into, of exactly their dims. They must not overlap inputs. A run that ends
                early may have written parts of them. Or functions of a dtype's name and a shape, which give such an array when the
                size is known; they are not asked for arrays without elements.
            timeout: seconds that the run may take; None: no limit.
            stop: a graphrt.Stop that may end it.
            stream: on GPUs, a CUDA stream (torch's, CuPy's, an address as int) that the run is enqueued on, behind what is there: the
                call does not wait. Inputs and `into` must be in the GPU's memory, and stay until the stream is done; outputs that are
                not in `into` are left out. What goes wrong on the GPU is raised by the next run on that stream. None: the run is over
                when this returns. In both cases it begins when the streams of CUDA inputs are done, as DLPack has it.
            state: a graphrt.State that the run begins with and leaves its own in; its inputs are not given, its outputs not returned.
        Returns: outputs by name in the model's order: new NumPy arrays that own their memory, lists, None, or what `into` has.
        Raises: InvalidArgument (names, dtypes, dims; values that an op refuses), OutOfMemory, DeviceError, Unsupported;
            DeadlineExceeded, Cancelled. Ctrl-C ends a run of the main thread: KeyboardInterrupt.
        """

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        """
        Run the model on inputs by position or name; the output itself if there is one, else a tuple in the model's order.
        """

    def watch(self, sink: Callable[[dict[str, Any]], Any] | None) -> None:
        """
        Call `sink` in each run, on the thread that runs, with each tensor that a step makes: a dict of step, op, nodes (of the ONNX
        model, joined by '+'), tensor (its name) and value, a new array. Runs go step by step then: for debugging. It must not run the session.
        None: no more.
        """

    def output_dims(self, inputs: graphrt._types.Inputs) -> dict[str, tuple[int | None, ...] | None]:
        """
        Dims that the outputs of a run with these inputs will have, without running: None for a dim that depends on data, and in place of
        all where an output is no tensor.
        """

    def close(self) -> None:
        """
        Release all that it has: no call begins any more, those of other threads that have begun end first (a graphrt.Stop ends
        them early). Pools and states that it was given to keep what they need of it. Closing it again does nothing; other
        calls raise InvalidArgument then, while model, device, inputs, outputs and closed stay. `with` closes at its end.

        Raises: InvalidArgument in a function that a run calls, as it would wait for itself. Ctrl-C ends the wait; it is closed
        then, and a further close releases.
        """

    def __enter__(self) -> Session: ...

    def __exit__(self, *raised: Any) -> None: ...

    @property
    def closed(self) -> bool:
        """True once close was called."""

    def trim(self) -> int:
        """
        Give back the memory of contexts that are idle: activations, workspaces, what is prepared. The next runs prepare anew.
        Returns: bytes of the device's memory.
        """

    def tune(self, inputs: graphrt._types.Inputs, *, seconds: float = 60.0, again: bool = False, progress: Callable[[str, float], bool | None] | None = None) -> dict[str, Any]:
        """
        Measure the algorithms that the device's libraries offer at the dims of `inputs`, and keep the fastest in the user's cache, where
        sessions that are made from now on find it. The device should have nothing else to do.

        Args:
            seconds: to be spent at most.
            again: measure what was tuned before, too.
            progress: called with what is measured and a fraction; False stops.
        Returns: steps (0: nothing to tune on this device), choices, tuned, known, improved, before_ms, after_ms, stopped, out_of_time.
        """

    def profile(self, sink: Callable[[list[dict[str, Any]]], Any] | None) -> None:
        """
        Call `sink` behind each run, on the thread that ran, with what the run did: dicts of kind ("run", "prepare", "compute", "step"),
        step (its number, or -1), op, name, begin_ms and end_ms on one clock, on_device. Steps are then timed one by one, which costs time.
        None: no more, which costs nothing.
        """

    def __repr__(self) -> str: ...

    @property
    def model(self) -> Model:
        """The model that it runs."""

    @property
    def device(self) -> str:
        """The device's name."""

    @property
    def threads(self) -> int:
        """
        CPU threads that one operator may use: what was asked for, or as many as could be made.
        """

    @property
    def inputs(self) -> list[graphrt._types.ValueInfo]:
        """The model's inputs."""

    @property
    def outputs(self) -> list[graphrt._types.ValueInfo]:
        """The model's outputs."""

    @property
    def load_info(self) -> dict[str, Any]:
        """
        What becoming ready took: bytes of weights, algorithms found and asked for, warnings.
        """

    @property
    def memory(self) -> dict[str, Any]:
        """
        Bytes of the device's memory that it has now, on the CPU of the host's: weights, kernels, activations, workspaces, inputs,
        values, state, total, peak, limit.
        """

    def set_weights(self, weights: dict[str, Any]) -> None:
        """
        Replace weights by name, all or none, for the runs that begin from now on. Each is an input with a default, as the ONNX model or
        keep_weights made it.

        Raises: InvalidArgument (a name, a type).
        """

    def check(self) -> None:
        """
        Raise DeviceError, with the error that it was lost by, if its device has failed.
        """

    @property
    def phases(self) -> list[dict[str, Any]]:
        """What making it ready did and when: name, begin_ms, end_ms."""

class Pool:
    """The library's pool of contexts; graphrt.Pool is what programs use."""

    def __init__(self, device_runs: int) -> None: ...

    def add(self, sessions: list[Session], **options: Any) -> int:
        """The number of a new lane."""

    def add_processes(self, model: Model, devices: list[str], processes: dict[str, Any], **options: Any) -> int:
        """The number of a new lane, whose sessions are in processes."""

    def run(self, inputs: Any, timeout: float | None, stop: Stop | None, priority: int, watch: bool, lane: int, state: State | None) -> dict[str, Any]:
        """
        Submit and wait, without the GIL. Any number of threads at once. watch: handlers of signals get their turn meanwhile.
        """

    def submit(self, inputs: Any, timeout: float | None, stop: Stop | None, priority: int, lane: int, state: State | None, wait: bool, done: Callable[[Any, Any], Any]) -> None:
        """
        Queue a run; where the queue is full, wait, or raise Busy. done(outputs, error) is called once, by a thread of the pool.
        """

    def stats(self, lane: int) -> dict:
        """Counts of a lane."""

    def times(self, phase: str, lane: int) -> dict:
        """Times of a lane's requests."""

    def drain(self, timeout: float | None) -> None:
        """Wait for what was submitted."""

    def shutdown(self, timeout: float | None) -> None:
        """Take no more, and end in time."""

    def cancel(self) -> None:
        """Cancel what was submitted."""

    def replace(self, index: int, session: Session, lane: int) -> None:
        """Let another session serve in the place of one."""

    def process(self, index: int, lane: int) -> dict:
        """About a process of a lane."""

def compile(model: str | os.PathLike, plan: str | os.PathLike, *, target: str = 'cpu', **options: Any) -> None:
    """
    Compile an ONNX file to a plan file, which is written whole or not at all. The same model and options give the same bytes.

    Args:
        model: path of the ONNX file.
        plan: path of the plan to be.
        target: kind of device that it is made for: "cpu", "cuda". No such device is needed.
        level: how much is optimised, 0 (what execution needs) to 2 (everything, the default).
        precision: "fp32" (default), "tf32", "fp16", "bf16": what float32 models are computed in.
        disable_passes: names of optimiser passes to leave out (graphrt.passes()).
        enable_passes: names of passes to run although the target does not ask for them.
        free_dims: names of symbolic dims of which every use may have a size of its own; "*": all.
        strict: what breaks a rule of the standard but has one meaning is an error, too.
        state: inputs by the outputs whose content they have in the next run, which the plan then declares for graphrt.State.
        keep_weights: names of weights that Session.set_weights can replace; they become inputs with defaults.
        external_weights: leave the weights in a file beside the plan.
        allow_symlinks: follow symlinks to external data inside a Hugging Face cache.
        external_data: files of external data by the name that the model has for them, as bytes or anything with a buffer, which must not
            change while the model exists; the others are read from the model's directory.
        shapes: dims of inputs by name, for algorithms that are chosen now.
        trust: whose plans may bring code, when a plan is opened: "all", "none" or public keys.
        progress: called with a phase's name and a fraction from 0 to 1.
        warning: called with a Finding for what was assumed about the model.
        cancel: called now and then; True ends the call with Cancelled.
    Raises: FileError, InvalidModel, Unsupported (lists every such node), InvalidArgument, Cancelled.
    """

def check(model: str | os.PathLike, device: str = 'cpu', **options: Any) -> list[graphrt._types.Finding]:
    """
    Everything that would keep an ONNX file from running on a kind of device, not only the first, and warnings (status "OK"). An
    empty list means that it runs. Options are compile's.

    Raises: FileError, and what compile raises for its options.
    """

def device_count(kind: str) -> int:
    """
    Devices of a kind ("cuda") in this machine; there may be 0. Starts the kind's driver.

    Raises: DeviceError if there is no such kind, or its module cannot be opened.
    """

def set_threads(threads: int) -> None:
    """
    Let the runs of all sessions on the CPU that are at work at a time have so many threads together. A run that would take them
    beyond that computes on its calling thread alone; none waits. 0, which is how it begins: each run has its session's threads.

    Raises: InvalidArgument.
    """

def passes() -> list[str]:
    """Names of the optimiser's passes in the order in which they run."""

def load_custom_ops(path: str | os.PathLike) -> None:
    """
    Open a shared object, which executes its code, and register its operators for the life of the process. They serve models that are
    opened or compiled afterwards; a plan with one needs it again. examples/custom_ops.c is such an object. To load it again does nothing.

    Raises: FileError, InvalidArgument (names the operator).
    """

def read_pb(path: str | os.PathLike, kind: str = 'tensor', element_kind: str = 'tensor') -> Any:
    """
    The value in one of ONNX's .pb files, which hold a TensorProto, SequenceProto, OptionalProto or MapProto: `kind` says which.

    Raises: FileError, InvalidModel.
    """

def set_log(level: str, function: Callable[[str, str, str], None] | None) -> None:
    """
    Send messages of the library to function(level, category, text): those of `level` ("error", "warning", "info", "debug") and the more
    important ones, of all of the process; None: to nobody. It is called by any thread and must not call the library.
    """

def set_trace(function: Callable[[dict[str, Any]], None] | None) -> None:
    """
    Tell function(span) what runs and pools of the process do, each span when it is over, on the thread that was in it: a dict of kind
    ("request", "queue", "copy in", "run", "prepare", "upload", "step", "replay", "capture", "download", "wait", "copy out"), op and name
    (of a step's nodes), device, step, lane, request, begin_ms and end_ms. None: no more. It must not call the library. Each takes the
    GIL: a program that is to be fast meanwhile writes the trace in C, or uses graphrun --trace.
    """
