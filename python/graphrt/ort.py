# SPDX-License-Identifier: Apache-2.0
"""The part of onnxruntime's interface that programs use, over libgraphrt: change `import onnxruntime as ort` to
`from graphrt import ort`.

What has no counterpart says so: a call that would change results or hand out something else raises NotImplementedError; a setting
that only tunes onnxruntime's own engine (arenas, execution order, log levels) is kept and has no effect. docs/onnxruntime.md has the table.
"""

import contextlib
import enum
import importlib.machinery
import importlib.util
import json
import os
import sys
import tempfile
import threading
import time
import types
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from . import _core
from ._core import Stop
from ._errors import Cancelled, DeviceError, Error, FileError, InternalError, InvalidArgument, InvalidModel, Unsupported
from ._ort_values import IOBinding, OrtDevice, OrtValue, SessionIOBinding, _type_text  # noqa: F401: part of the interface

__version__ = _core.version()
INTERFACE_VERSION = "1.31.1"  # of onnxruntime, whose interface this follows

# onnxruntime's names for errors.
Fail = RuntimeException = Error
InvalidGraph = InvalidProtobuf = InvalidModel
NoSuchFile = FileError
NotImplemented = Unsupported  # noqa: A001
EPFail = DeviceError
EngineError = InternalError

_PROVIDERS = {"CUDAExecutionProvider": "cuda", "CPUExecutionProvider": "cpu"}


def get_all_providers():
    return list(_PROVIDERS)


def get_available_providers():
    """Those that have a device in this machine, the fastest first."""
    return [provider for provider, kind in _PROVIDERS.items() if kind == "cpu" or _has(kind)]


def _has(kind):
    try:
        return _core.device_count(kind) > 0
    except DeviceError:
        return False


def get_device():
    return "GPU" if _has("cuda") else "CPU"


def get_version_string():
    return __version__


def get_build_info():
    return f"libgraphrt {__version__}"


def _without_effect(*_args, **_kwargs):
    """Kept for programs that call it; there is nothing to set."""


set_default_logger_severity = set_default_logger_verbosity = _without_effect
enable_telemetry_events = disable_telemetry_events = preload_dlls = _without_effect
set_global_thread_pool_sizes = create_and_register_allocator = OrtArenaCfg = OrtMemoryInfo = _without_effect


def set_seed(seed):
    raise Unsupported("set_seed: give operators of random numbers a `seed` in the model")


def install():
    """Make `import onnxruntime` this module for all that is imported from now on, for packages that cannot be changed. Its `__version__` is
    INTERFACE_VERSION there. Where onnxruntime is installed, its parts in Python (onnxruntime.quantization, onnxruntime.transformers) are
    still found, and run their models here. Raises RuntimeError if onnxruntime itself was imported before."""
    if isinstance(sys.modules.get("onnxruntime"), _Installed):
        return
    if "onnxruntime" in sys.modules:
        raise RuntimeError("onnxruntime is imported already: call graphrt.ort.install() before whatever imports it")
    found = importlib.util.find_spec("onnxruntime")
    places = list(found.submodule_search_locations or ()) if found else []
    names = {name: value for name, value in globals().items() if not name.startswith("_")}
    modules = {}
    for path in ("onnxruntime", "onnxruntime.capi", "onnxruntime.capi._pybind_state", "onnxruntime.capi.onnxruntime_pybind11_state",
                 "onnxruntime.capi.onnxruntime_inference_collection"):
        modules[path] = made = _Installed(path, __doc__)
        made.__dict__.update(names, __version__=INTERFACE_VERSION, __path__=[] if "." in path else places,
                             __spec__=importlib.machinery.ModuleSpec(path, None, is_package=True))
        parent, _, name = path.rpartition(".")
        if parent:
            setattr(modules[parent], name, made)
    sys.modules.update(modules)


class _Installed(types.ModuleType):
    """A module that install() has put in onnxruntime's place."""


class GraphOptimizationLevel(enum.IntEnum):
    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


class SessionOptions:
    """Used: intra_op_num_threads (threads of an operator; 0: one per physical core), graph_optimization_level,
    optimized_model_filepath (a plan of libgraphrt is written there), enable_profiling and profile_file_prefix,
    add_free_dimension_override_by_name, add_external_initializers_from_files_in_memory."""

    def __init__(self):
        self.intra_op_num_threads = 0
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.optimized_model_filepath = ""
        self.enable_profiling = False
        self.profile_file_prefix = "onnxruntime_profile_"
        # Kept, without effect.
        self.inter_op_num_threads = 0
        self.execution_mode = ExecutionMode.ORT_SEQUENTIAL
        self.execution_order = ExecutionOrder.DEFAULT
        self.enable_cpu_mem_arena = self.enable_mem_pattern = self.enable_mem_reuse = True
        self.use_deterministic_compute = False
        self.use_per_session_threads = True
        self.log_severity_level, self.log_verbosity_level, self.logid = -1, 0, ""
        self._config = {}
        self._dims = {}
        self._providers = []
        self._files = {}

    def add_session_config_entry(self, key, value):
        self._config[key] = value

    def get_session_config_entry(self, key):
        if key not in self._config:
            raise InvalidArgument(f"no session config entry {key!r} was added")
        return self._config[key]

    def add_free_dimension_override_by_name(self, name, value):
        """Runs take no other size for the symbolic dim `name`, and get_inputs shows it."""
        self._dims[name] = int(value)

    def add_provider(self, name, options=None):
        self._providers.append((name, dict(options or {})))

    def has_providers(self):
        return bool(self._providers)

    def register_custom_ops_library(self, path):
        raise Unsupported(f"{path}: onnxruntime's custom operators are made for onnxruntime; libgraphrt's are loaded by "
                          "graphrt.load_custom_ops")

    def add_external_initializers_from_files_in_memory(self, file_names, buffers, lengths):
        """Files of external data that are in memory, by the names that the model has for them. They are not copied."""
        self._files.update({name: memoryview(buffer).cast("B")[:length] for name, buffer, length in zip(file_names, buffers, lengths)})

    def add_initializer(self, name, value):
        raise Unsupported(f"add_initializer({name!r}): weights come with the model; inputs with a default can be given at a run")


class _Profile:
    """What runs did, for the file that end_profiling() writes: events of Chrome's tracing, as onnxruntime's."""

    def __init__(self, prefix):
        self._prefix, self._begin, self.start_ns = prefix, time.monotonic(), time.time_ns()
        self._runs = []

    def sink(self):
        runs = self._runs  # and not self: nothing that a session keeps leads back to it
        return lambda events: runs.append((threading.get_native_id(), events))

    def write(self, provider):
        path = f"{self._prefix}_{time.strftime('%Y-%m-%d_%H-%M-%S')}_{self.start_ns // 1000000 % 1000:03}.json"
        with open(path, "w", encoding="utf-8") as file:
            json.dump([self._event(thread, event, provider) for thread, events in self._runs for event in events], file)
        return path

    def _event(self, thread, event, provider):
        is_step = event["kind"] == "step"
        name = f"{event['name']}_kernel_time" if is_step else {"run": "model_run"}.get(event["kind"], event["kind"])
        arguments = {"op_name": event["op"], "provider": provider, "node_index": str(event["step"])} if is_step else {}
        return {"cat": "Node" if is_step else "Session", "pid": os.getpid(), "tid": thread, "ph": "X", "name": name,
                "ts": round((event["begin_ms"] - self._begin * 1e3) * 1e3), "dur": round((event["end_ms"] - event["begin_ms"]) * 1e3),
                "args": arguments}


class RunOptions:
    """Used: terminate, which ends runs that have these options, in progress or not yet begun."""

    def __init__(self):
        self._stop = Stop()
        self.log_severity_level, self.log_verbosity_level, self.logid = -1, 0, ""
        self.only_execute_path_to_fetches = False
        self._config = {}

    @property
    def terminate(self):
        return self._stop.is_set()

    @terminate.setter
    def terminate(self, value):
        if value:
            self._stop.set()
        elif self._stop.is_set():
            self._stop = Stop()

    def add_run_config_entry(self, key, value):
        self._config[key] = value

    def get_run_config_entry(self, key):
        return self._config[key]


class NodeArg:
    """name, type ("tensor(float)") and shape (numbers, names of symbolic dims) of an input or output."""

    def __init__(self, info, dims):
        self.name = info.name
        self.type = _type_text(info)
        self.shape = [dims.get(dim, dim) for dim in info.shape or ()]

    def __repr__(self):
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"

    __str__ = __repr__


class ModelMetadata:
    """What the model says about itself."""

    def __init__(self, metadata):
        self.producer_name = metadata["producer_name"]
        self.graph_name = metadata["graph_name"]
        self.domain = metadata["domain"]
        self.description = metadata["description"]
        self.graph_description = metadata["graph_description"]
        self.version = metadata["model_version"]
        self.custom_metadata_map = metadata["entries"]


@contextlib.contextmanager
def _as_file(source):
    """A path for a path or a model's bytes."""
    if not isinstance(source, (bytes, bytearray, memoryview)):
        yield source
        return
    with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
        file.write(source)
        file.flush()
        yield file.name


class InferenceSession:
    """onnxruntime.InferenceSession. Models are .onnx files, their bytes, or plans of graphc.

    Args:
        path_or_bytes: the model.
        sess_options: SessionOptions.
        providers: names, or (name, options), most wanted first; None: all that are available. The first that this machine has is used;
            operators that a GPU lacks run on the CPU if CPUExecutionProvider is named, too, else they are an error.
        provider_options: dicts, one for each provider.
    """

    def __init__(self, path_or_bytes, sess_options=None, providers=None, provider_options=None, **kwargs):
        self._options = sess_options if sess_options is not None else SessionOptions()
        self._profile = _Profile(self._options.profile_file_prefix) if self._options.enable_profiling else None
        self._source = path_or_bytes
        # optimum reads onnxruntime's attribute of this name.
        self._model_path = os.fspath(path_or_bytes) if isinstance(path_or_bytes, (str, os.PathLike)) else None
        self._threads = None
        self.set_providers(providers, provider_options)

    def set_providers(self, providers=None, provider_options=None):
        """Make the session anew on other devices."""
        wanted = list(providers or self._options._providers or get_available_providers())
        options = list(provider_options or [{}] * len(wanted))
        chosen = {}
        for entry, own in zip(wanted, options):
            name, own = (entry[0], {**own, **entry[1]}) if isinstance(entry, (tuple, list)) else (entry, own)
            kind = _PROVIDERS.get(name)
            if kind is None or (kind != "cpu" and not _has(kind)):
                warnings.warn(f"Specified provider '{name}' is not in available provider names: {get_available_providers()}",
                              stacklevel=3)
            else:
                chosen[name] = {key: str(value) for key, value in own.items()}
        self._chosen = chosen or {"CPUExecutionProvider": {}}
        first = next(iter(self._chosen))
        kind = _PROVIDERS[first]
        device = kind if kind == "cpu" else f"{kind}:{self._chosen[first].get('device_id', 0)}"
        fallback = "cpu" if kind != "cpu" and "CPUExecutionProvider" in self._chosen else None
        self._open(device, fallback)

    def _open(self, device, fallback):
        level = min(2, int(self._options.graph_optimization_level))
        source = os.fspath(self._source) if hasattr(self._source, "__fspath__") else self._source
        plan = self._options.optimized_model_filepath
        files = {"external_data": self._options._files} if self._options._files else {}
        if plan:
            with _as_file(source) as path:
                _core.compile(path, plan, target=device.partition(":")[0], level=level, **files)
            source, files = plan, {}
        self._session = _core.Session(source, device, threads=self._options.intra_op_num_threads, fallback=fallback, level=level, **files)
        if self._profile:
            self._session.profile(self._profile.sink())
        self._inputs = [info for info in self._session.inputs if not info.has_default]
        self._defaults = [info for info in self._session.inputs if info.has_default]
        self._required = [info.name for info in self._inputs if info.kind != "optional"]
        self._names = {info.name for info in self._session.inputs}
        self._output_names = [info.name for info in self._session.outputs]
        # Lists and dicts do not show their types, which are the outputs'.
        self._hidden_types = {info.name: _type_text(info) for info in self._session.outputs if info.kind in ("sequence", "map")}

    def get_inputs(self):
        return [NodeArg(info, self._options._dims) for info in self._inputs]

    def get_outputs(self):
        return [NodeArg(info, self._options._dims) for info in self._session.outputs]

    def get_overridable_initializers(self):
        return [NodeArg(info, self._options._dims) for info in self._defaults]

    def get_modelmeta(self):
        return ModelMetadata(self._session.model.metadata)

    def get_providers(self):
        return list(self._chosen)

    def get_provider_options(self):
        return {name: dict(options) for name, options in self._chosen.items()}

    def get_session_options(self):
        return self._options

    enable_fallback = disable_fallback = _without_effect

    def end_profiling(self):
        """Write what runs did to a file and return its name; "" where the session's options did not ask for it."""
        profile, self._profile = self._profile, None
        if profile is None:
            return ""
        self._session.profile(None)
        return profile.write(next(iter(self._chosen)))

    def get_profiling_start_time_ns(self):
        return self._profile.start_ns if self._profile else 0

    def io_binding(self):
        return IOBinding(self)

    def _check_feed(self, feed):
        missing = [name for name in self._required if name not in feed]
        if missing:
            raise ValueError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")
        for info in self._inputs if self._options._dims else ():
            for axis, dim in enumerate(info.shape or ()):
                size = self._options._dims.get(dim)
                if size is not None and np.shape(feed[info.name])[axis] != size:
                    raise InvalidArgument(f"'{info.name}' has {np.shape(feed[info.name])[axis]} in dim {axis}, '{dim}', which an override "
                                          f"of the session's options fixes at {size}")

    def _run(self, names, feed, run_options, into=None):
        self._check_feed(feed)
        results = self._session.run(feed, names, into) if run_options is None else self._run_stoppable(names, feed, run_options, into)
        return [results[name] for name in names]

    def _run_stoppable(self, names, feed, run_options, into):
        try:
            return self._session.run(feed, names, into, stop=run_options._stop)
        except Cancelled as cancelled:
            raise Fail("Exiting due to terminate flag being set to true.") from cancelled

    def run(self, output_names, input_feed, run_options=None):
        """A list of outputs, NumPy arrays or lists of them, in the order of `output_names` (None or []: the model's)."""
        feed = {name: value._value if isinstance(value, OrtValue) else value for name, value in input_feed.items()}
        return self._run(list(output_names or self._output_names), feed, run_options)

    def _ort_value(self, name, value):
        return OrtValue(value, type_text=self._hidden_types.get(name))

    def run_with_ort_values(self, output_names, input_dict_ort_values, run_options=None):
        feed = {name: value._value for name, value in input_dict_ort_values.items()}
        names = list(output_names or self._output_names)
        return [self._ort_value(name, value) for name, value in zip(names, self._run(names, feed, run_options))]

    def run_with_iobinding(self, iobinding, run_options=None):
        into = {name: memory for name, memory in iobinding._outputs.items() if memory is not None}
        names = list(iobinding._outputs)
        iobinding._results = dict(zip(names, self._run(names, iobinding._inputs, run_options, into)))

    def run_async(self, output_names, input_feed, callback, user_data, run_options=None):
        """Return at once; callback(results, user_data, error) is called by another thread: error is "" or what went wrong."""
        if self._threads is None:
            self._threads = ThreadPoolExecutor(max_workers=os.cpu_count(), thread_name_prefix="graphrt-ort")

        def work():
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as raised:  # noqa: BLE001: it is the callback's to handle
                results, error = [], str(raised)
            callback(results, user_data, error)

        self._threads.submit(work)

    def create_ortvalue_from_shape_and_type(self, shape, element_type):
        return OrtValue.ortvalue_from_shape_and_type(shape, element_type)
