# SPDX-License-Identifier: Apache-2.0
"""Programs as people write them for onnxruntime. test_ort.py runs each with onnxruntime and with graphrt.ort and compares what they return;
docs/onnxruntime.md lists their first lines.

Each takes the module, a directory of its own, and the models below; it returns something that can be compared.
"""
import ast
import copy
import json
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

PROGRAMS = []


def program(function):
    PROGRAMS.append(function)
    return function


X = np.arange(8, dtype=np.float32).reshape(2, 4)


@program
def run_everything(ort, at, models):
    """`session.run(None, {name: array})`"""
    return ort.InferenceSession(models["linear"]).run(None, {"x": X})


@program
def run_named_outputs(ort, at, models):
    """`session.run(["b", "a"], feed)`: some outputs, in another order"""
    session = ort.InferenceSession(models["two"])
    return session.run(["b", "a"], {"x": X}) + session.run(["b"], {"x": X}) + session.run([], {"x": X})


@program
def input_names_and_shapes(ort, at, models):
    """`get_inputs()`: `.name`, `.type`, `.shape`"""
    session = ort.InferenceSession(models["linear"])
    return [(i.name, i.type, i.shape) for i in session.get_inputs()], session.get_inputs()[0].name


@program
def output_names_and_shapes(ort, at, models):
    """`get_outputs()`: `.name`, `.type`, `.shape`"""
    return [(o.name, o.type, o.shape) for key in ("linear", "two", "half", "text", "pieces") for o in
            ort.InferenceSession(models[key]).get_outputs()]


@program
def feed_by_position(ort, at, models):
    """`dict(zip([i.name for i in session.get_inputs()], arrays))`"""
    session = ort.InferenceSession(models["add"])
    return session.run(None, dict(zip([i.name for i in session.get_inputs()], [X, X + 1])))


@program
def model_from_bytes(ort, at, models):
    """`InferenceSession(model_bytes)`, `InferenceSession(model.SerializeToString())`"""
    return ort.InferenceSession(models["linear"]).run(None, {"x": X})


@program
def model_from_a_path(ort, at, models):
    """`InferenceSession("model.onnx")`"""
    path = at / "m.onnx"
    path.write_bytes(models["linear"])
    return ort.InferenceSession(str(path)).run(None, {"x": X})


@program
def model_from_a_pathlib_path(ort, at, models):
    """`InferenceSession(Path("model.onnx"))`"""
    path = Path(at) / "m.onnx"
    path.write_bytes(models["linear"])
    return ort.InferenceSession(path).run(None, {"x": X})


@program
def number_of_threads(ort, at, models):
    """`SessionOptions().intra_op_num_threads`, `.inter_op_num_threads`, `.execution_mode`"""
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.execution_mode = ort.ExecutionMode.ORT_SEQUENTIAL
    return ort.InferenceSession(models["linear"], options).run(None, {"x": X}), options.intra_op_num_threads


@program
def optimization_levels(ort, at, models):
    """`SessionOptions().graph_optimization_level`"""
    results = []
    for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_BASIC", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_ALL"):
        options = ort.SessionOptions()
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        results += ort.InferenceSession(models["linear"], sess_options=options).run(None, {"x": X})
    return results


@program
def one_provider(ort, at, models):
    """`providers=["CPUExecutionProvider"]`, `get_providers()`"""
    session = ort.InferenceSession(models["linear"], providers=["CPUExecutionProvider"])
    return session.run(None, {"x": X}), session.get_providers()


@program
def provider_with_options(ort, at, models):
    """`providers=[("CPUExecutionProvider", {...})]`, `provider_options=[{...}]`"""
    session = ort.InferenceSession(models["linear"], providers=[("CPUExecutionProvider", {})])
    other = ort.InferenceSession(models["linear"], providers=["CPUExecutionProvider"], provider_options=[{}])
    return session.run(None, {"x": X}), other.get_provider_options()


@program
def providers_that_are_here(ort, at, models):
    """`get_available_providers()`, `get_device()`: a GPU where there is one, else the CPU"""
    wanted = ["CUDAExecutionProvider", "CPUExecutionProvider"]
    providers = [p for p in wanted if p in ort.get_available_providers()]
    return ort.InferenceSession(models["linear"], providers=providers).run(None, {"x": X}), ort.get_device() in ("CPU", "GPU")


@program
def changing_batch(ort, at, models):
    """runs of many batch sizes on one session"""
    session = ort.InferenceSession(models["linear"])
    return [session.run(None, {"x": np.resize(X, (n, 4))})[0] for n in (1, 5, 1, 32, 2)]


@program
def several_dtypes(ort, at, models):
    """float16, int64, bool and float64 in and out"""
    results = ort.InferenceSession(models["half"]).run(None, {"x": X.astype(np.float16)})
    return results + ort.InferenceSession(models["mixed"]).run(None, {"i": np.array([3, -4]), "c": np.array([True, False])})


@program
def text(ort, at, models):
    """string tensors"""
    return ort.InferenceSession(models["text"]).run(None, {"x": np.array(["Ab", "c\u00e9"])})


@program
def sequences(ort, at, models):
    """outputs that are sequences: lists of arrays"""
    return ort.InferenceSession(models["pieces"]).run(None, {"x": X})


@program
def maps(ort, at, models):
    """outputs that are sequences of maps (ZipMap of the converters): lists of dicts"""
    sessions = [ort.InferenceSession(models[name]) for name in ("numbers", "names")]
    return [(s.get_outputs()[0].type, s.get_outputs()[0].shape, s.run(None, {"x": X})) for s in sessions]


@program
def map_inputs(ort, at, models):
    """inputs that are maps: dicts"""
    session = ort.InferenceSession(models["dict"])
    return session.get_inputs()[0].type, session.run(None, {"x": {"b": 1.5, "z": 2.0}})


@program
def defaults(ort, at, models):
    """`get_overridable_initializers()`; inputs that are left out"""
    session = ort.InferenceSession(models["default"])
    names = [i.name for i in session.get_inputs()], [i.name for i in session.get_overridable_initializers()]
    return names, session.run(None, {"x": X}), session.run(None, {"x": X, "b": np.float32([9])})


@program
def many_threads(ort, at, models):
    """one session in a `ThreadPoolExecutor`"""
    session = ort.InferenceSession(models["linear"])
    with ThreadPoolExecutor(4) as threads:
        return list(threads.map(lambda n: session.run(None, {"x": X + n})[0], range(50)))


@program
def asynchronous(ort, at, models):
    """`run_async` with a callback"""
    done, got = threading.Event(), []

    def callback(results, user_data, error):
        got.extend([results[0].copy(), user_data, error])
        done.set()

    ort.InferenceSession(models["linear"]).run_async(None, {"x": X}, callback, "mine")
    assert done.wait(10)
    return got


@program
def binding(ort, at, models):
    """`io_binding()`: `bind_cpu_input`, `bind_output`, `run_with_iobinding`, `copy_outputs_to_cpu`"""
    session = ort.InferenceSession(models["two"])
    bound = session.io_binding()
    bound.bind_cpu_input("x", X)
    bound.bind_output("b")
    bound.bind_output("a")
    session.run_with_iobinding(bound)
    return bound.copy_outputs_to_cpu(), [value.numpy() for value in bound.get_outputs()]


@program
def binding_of_values(ort, at, models):
    """`bind_ortvalue_input`, `bind_ortvalue_output`: results in memory of one's own"""
    session = ort.InferenceSession(models["linear"])
    x = ort.OrtValue.ortvalue_from_numpy(X)
    y = ort.OrtValue.ortvalue_from_shape_and_type([2, 3], np.float32)
    bound = session.io_binding()
    bound.bind_ortvalue_input("x", x)
    bound.bind_ortvalue_output("y", y)
    session.run_with_iobinding(bound)
    return y.numpy()


@program
def binding_of_addresses(ort, at, models):
    """`bind_input` and `bind_output` with `buffer_ptr`, as with torch's `data_ptr()`"""
    session = ort.InferenceSession(models["linear"])
    x, y = X.copy(), np.zeros((2, 3), np.float32)
    bound = session.io_binding()
    bound.bind_input(name="x", device_type="cpu", device_id=0, element_type=np.float32, shape=x.shape, buffer_ptr=x.ctypes.data)
    bound.bind_output(name="y", device_type="cpu", device_id=0, element_type=np.float32, shape=y.shape, buffer_ptr=y.ctypes.data)
    session.run_with_iobinding(bound)
    return y


@program
def binding_again_and_again(ort, at, models):
    """a binding that is used for many runs: `update_inplace`, `clear_binding_inputs`, `clear_binding_outputs`"""
    session = ort.InferenceSession(models["linear"])
    x = ort.OrtValue.ortvalue_from_numpy(X.copy())
    bound, results = session.io_binding(), []
    bound.bind_ortvalue_input("x", x)
    bound.bind_output("y")
    for n in range(3):
        x.update_inplace(X + n)
        bound.synchronize_inputs()
        session.run_with_iobinding(bound)
        bound.synchronize_outputs()
        results.append(bound.copy_outputs_to_cpu()[0].copy())
    bound.clear_binding_inputs()
    bound.clear_binding_outputs()
    bound.bind_cpu_input("x", X)
    bound.bind_output("y")
    session.run_with_iobinding(bound)
    return results + bound.copy_outputs_to_cpu()


@program
def ort_values(ort, at, models):
    """`run_with_ort_values`; `OrtValue`: `numpy`, `shape`, `data_type`, `element_type`, `is_tensor`, `device_name`"""
    x = ort.OrtValue.ortvalue_from_numpy(X)
    y, = ort.InferenceSession(models["linear"]).run_with_ort_values(["y"], {"x": x})
    return [(v.numpy(), v.shape(), v.data_type(), v.element_type(), v.is_tensor(), v.has_value(), v.device_name()) for v in (x, y)]


@program
def dlpack(ort, at, models):
    """`OrtValue.from_dlpack`, `numpy.from_dlpack(value)`"""
    value = ort.OrtValue.from_dlpack(X.copy())
    return value.numpy()


@program
def missing_input(ort, at, models):
    """`except ValueError` for an input that is missing"""
    try:
        ort.InferenceSession(models["linear"]).run(None, {})
    except ValueError as error:
        return str(error)


@program
def wrong_input(ort, at, models):
    """exceptions for a wrong dtype, shape or name"""
    session, raised = ort.InferenceSession(models["linear"]), []
    for feed in ({"x": X.astype(np.float64)}, {"x": X[:, :2]}, {"x": X, "z": X}):
        try:
            session.run(None, feed)
        except Exception:  # noqa: BLE001
            raised.append(True)
    return raised


@program
def no_such_model(ort, at, models):
    """exceptions for a file that is missing or broken"""
    raised = []
    for source in (str(at / "none.onnx"), b"nonsense"):
        try:
            ort.InferenceSession(source)
        except Exception:  # noqa: BLE001
            raised.append(True)
    return raised


@program
def run_options(ort, at, models):
    """`RunOptions`: log levels, config entries, `terminate`"""
    options = ort.RunOptions()
    options.log_severity_level = 3
    options.add_run_config_entry("memory.enable_memory_arena_shrinkage", "cpu:0")
    session = ort.InferenceSession(models["linear"])
    results = session.run(None, {"x": X}, options)
    options.terminate = True
    try:
        session.run(None, {"x": X}, options)
    except Exception as error:  # noqa: BLE001
        return results, "terminate" in str(error)


@program
def log_and_session_settings(ort, at, models):
    """`set_default_logger_severity`, `add_session_config_entry`, memory settings"""
    ort.set_default_logger_severity(3)
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.enable_mem_pattern = options.enable_cpu_mem_arena = False
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    session = ort.InferenceSession(models["linear"], options)
    return session.run(None, {"x": X}), options.get_session_config_entry("session.intra_op.allow_spinning")


@program
def optimized_model(ort, at, models):
    """`optimized_model_filepath`: optimise once, load the result"""
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(at / "optimized")
    options.log_severity_level = 3
    ort.InferenceSession(models["linear"], options)
    return ort.InferenceSession(str(at / "optimized")).run(None, {"x": X})


@program
def fixed_dims(ort, at, models):
    """`add_free_dimension_override_by_name`"""
    options = ort.SessionOptions()
    options.add_free_dimension_override_by_name("N", 2)
    options.log_severity_level = 4
    session = ort.InferenceSession(models["linear"], options)
    refused = False
    try:
        session.run(None, {"x": X[:1]})
    except Exception:  # noqa: BLE001
        refused = True
    return session.get_inputs()[0].shape, session.run(None, {"x": X}), refused


@program
def metadata(ort, at, models):
    """`get_modelmeta()`: `.producer_name`, `.graph_name`, `.domain`, `.description`, `.version`, `.custom_metadata_map`"""
    told, silent = [ort.InferenceSession(models[name]).get_modelmeta() for name in ("told", "linear")]
    return told.version, [(m.producer_name, m.graph_name, m.domain, m.description, m.graph_description, m.custom_metadata_map)
                          for m in (told, silent)]


@program
def profiled(ort, at, models):
    """`enable_profiling`, `profile_file_prefix`, `end_profiling()`: events of operators in a file of JSON"""
    options = ort.SessionOptions()
    options.enable_profiling, options.profile_file_prefix = True, str(at / "profile")
    session = ort.InferenceSession(models["two"], options)
    for _ in range(2):
        session.run(None, {"x": X})
    events = json.loads(Path(session.end_profiling()).read_text())
    nodes = [event for event in events if event["cat"] == "Node" and "op_name" in event["args"]]
    session.run(None, {"x": X})
    return (sorted(event["args"]["op_name"] for event in nodes), {event["ph"] for event in nodes}, {event["args"]["provider"] for event in nodes},
            all(event["dur"] >= 0 and event["ts"] > 0 and event["pid"] > 0 for event in nodes), session.end_profiling() == "",
            sum(event["name"] == "model_run" for event in events))


@program
def weights_in_memory(ort, at, models):
    """`add_external_initializers_from_files_in_memory`"""
    weights = np.arange(12, dtype=np.float32).tobytes()
    options = ort.SessionOptions()
    options.add_external_initializers_from_files_in_memory(["weights.bin"], [weights], [len(weights)])
    return ort.InferenceSession(models["external"], options).run(None, {"x": X})


@program
def providers_again(ort, at, models):
    """`set_providers`, `get_provider_options`, `disable_fallback`"""
    session = ort.InferenceSession(models["linear"], providers=["CPUExecutionProvider"])
    session.disable_fallback()
    session.set_providers(["CPUExecutionProvider"])
    return session.run(None, {"x": X}), session.get_providers(), session.get_provider_options()


@program
def arrays_of_any_layout(ort, at, models):
    """arrays that are transposed, sliced, read-only or of Fortran's order"""
    session = ort.InferenceSession(models["linear"])
    frozen = X.copy()
    frozen.flags.writeable = False
    return [session.run(None, {"x": x})[0] for x in (X.reshape(4, 2).T, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2], X[::-1], frozen)]


@program
def picklable(ort, at, models):
    """a subclass of `InferenceSession` with `__getstate__`, as loaders of many packages have it"""

    class Picklable(ort.InferenceSession):
        def __init__(self, path, **kwargs):
            super().__init__(path, **kwargs)
            self.model_path = path

        def __getstate__(self):
            return {"model_path": self.model_path}

        def __setstate__(self, values):
            self.__init__(values["model_path"])

    (at / "m.onnx").write_bytes(models["linear"])
    session = copy.copy(Picklable(str(at / "m.onnx"), providers=["CPUExecutionProvider"]))
    return session.run(None, {"x": X}), session.model_path == str(at / "m.onnx"), Path(session._model_path).name


@program
def in_other_processes(ort, at, models):
    """a session for each worker of `multiprocessing`, forked behind one that has run"""
    here = ort.InferenceSession(models["linear"]).run(None, {"x": X})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of fork beside threads
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.write(writer, ort.InferenceSession(models["linear"]).run(None, {"x": X})[0].tobytes())
            os._exit(0)
    os.waitpid(child, 0)
    return here, np.frombuffer(os.read(reader, 1 << 16), np.float32)


@program
def dummy_inputs(ort, at, models):
    """inputs made of `get_inputs()`: dims that are no numbers become 1, `tensor(...)` a dtype"""
    dtypes = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(int64)": np.int64, "tensor(bool)": np.bool_}
    results = []
    for name in ("linear", "half", "mixed", "two"):
        session = ort.InferenceSession(models[name])
        feed = {i.name: np.ones([d if isinstance(d, int) else 1 for d in i.shape], dtypes[i.type]) for i in session.get_inputs()}
        results.append(session.run([o.name for o in session.get_outputs()], feed))
    return results


@program
def values_to_dlpack(ort, at, models):
    """`OrtValue._ortvalue.to_dlpack()`, as `torch.utils.dlpack.from_dlpack` takes it"""
    session = ort.InferenceSession(models["linear"])
    value = session.run_with_ort_values(None, {"x": ort.OrtValue.ortvalue_from_numpy(X, "cpu", 0)})[0]
    return "dltensor" in repr(value._ortvalue.to_dlpack()), value.numpy()


@program
def bound_outputs(ort, at, models):
    """`binding.get_outputs()[0].numpy()`, an output bound by name for results of any size"""
    session = ort.InferenceSession(models["pieces"])
    linear = ort.InferenceSession(models["linear"])
    binding, results = linear.io_binding(), []
    for rows in (1, 2, 2):
        binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(X[:rows]))
        binding.bind_output("y", "cpu")
        linear.run_with_iobinding(binding, ort.RunOptions())
        results.append(binding.get_outputs()[0].numpy())
    return results, session.run(["s"], {"x": X})


@program
def sequence_inputs(ort, at, models):
    """inputs that are sequences: lists of arrays"""
    session = ort.InferenceSession(models["joined"])
    return session.get_inputs()[0].type, session.run(None, {"s": [X, X + 1, X[:1]]})


@program
def optional_inputs(ort, at, models):
    """inputs that are optional: `None` or the array"""
    session = ort.InferenceSession(models["maybe"])
    return session.get_inputs()[0].type, session.run(None, {"x": X}), session.run(None, {"x": None})


@program
def labels_in_metadata(ort, at, models):
    """`ast.literal_eval(get_modelmeta().custom_metadata_map["names"])`"""
    names = ast.literal_eval(ort.InferenceSession(models["labelled"]).get_modelmeta().custom_metadata_map["names"])
    return names[1], len(names)


@program
def no_such_output(ort, at, models):
    """exceptions for outputs and inputs that the model does not have"""
    session, raised = ort.InferenceSession(models["linear"]), []
    for names, feed in ((["nope"], {"x": X}), (None, {"x": X, "nope": X}), (None, [X])):
        try:
            session.run(names, feed)
        except Exception:  # noqa: BLE001
            raised.append(True)
    return raised


@program
def terminated_before(ort, at, models):
    """a `RunOptions` that is used again after `terminate = False`"""
    session, options = ort.InferenceSession(models["linear"]), ort.RunOptions()
    options.terminate = True
    try:
        ended = bool(session.run(None, {"x": X}, options)) and False
    except Exception:  # noqa: BLE001
        ended = True
    options.terminate = False
    return ended, session.run(None, {"x": X}, run_options=options)


@program
def one_session_many_wrappers(ort, at, models):
    """a class with `__call__` around a session, `get_inputs()[0]` and `get_outputs()[0]` looked up at every call"""

    class Model:
        def __init__(self, source, **kwargs):
            self.session = ort.InferenceSession(source, sess_options=kwargs.get("sess_options"), providers=["CPUExecutionProvider"])

        def __call__(self, x):
            return self.session.run([self.session.get_outputs()[0].name], {self.session.get_inputs()[0].name: x.astype(np.float32)})[0]

    models = [Model(models["linear"], sess_options=options) for options in (None, ort.SessionOptions())]
    return [model(X.astype(np.float64)) for model in models], [model(X[None][0]) for model in models]
