/* SPDX-License-Identifier: Apache-2.0 */
#include "model.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <nanobind/stl/string.h>

/* Of the process; never released. */
static std::atomic<grt_runtime *> process;

grt_runtime *runtime()
{
    static std::once_flag once;
    static grt_status status;
    std::call_once(once, [] {
        grt_runtime *made = nullptr;
        status = grt_runtime_create(&made);
        process = made;
    });
    if (!process)
        raise_status(status, "the runtime could not be made");
    return process;
}

void stop_compiling()
{
    nb::gil_scoped_release released;
    grt_runtime_stop_compiling(process);
}

std::string device_kind(const std::string &device)
{
    return device.substr(0, device.find(':'));
}

nb::list phases_list(const grt_phase *phases, size_t n)
{
    nb::list list;
    for (size_t i = 0; i < n; i++) {
        nb::dict row;
        row["name"] = phases[i].name;
        row["begin_ms"] = phases[i].begin_ms;
        row["end_ms"] = phases[i].end_ms;
        list.append(row);
    }
    return list;
}

namespace
{
/* A library that is newer than this binding may have more kinds. */
const char *kind_name(grt_kind kind)
{
    static const char *const names[] = {"tensor", "sequence", "optional", "map"};
    return (size_t)kind < sizeof names / sizeof *names ? names[kind] : "unknown";
}

Port make_port(const grt_io_info &info, grt_dtype keys)
{
    Port port{info.name, taken(PyUnicode_InternFromString(info.name)), info, keys, {}};
    nb::object key_dtype = nb::none();
    if (keys != GRT_DTYPE_NONE)
        key_dtype = nb::str(grt_dtype_name(keys));
    nb::object shape = nb::none();
    if (info.rank >= 0) {
        nb::list dims;
        for (int32_t i = 0; i < info.rank; i++)
            dims.append(info.dims[i] >= 0 ? nb::object(nb::int_(info.dims[i]))
                                          : nb::object(nb::str(info.symbols[i])));
        shape = nb::tuple(dims);
    }
    port.described = nb::module_::import_("graphrt._types")
                         .attr("ValueInfo")(port.key, kind_name(info.kind), kind_name(info.element_kind),
                                            grt_dtype_name(info.dtype), shape, info.has_default, key_dtype);
    return port;
}

template <typename Get, typename Keys>
std::vector<Port> ports_of(const grt_model *model, size_t n, Get get, Keys keys)
{
    std::vector<Port> ports;
    for (size_t i = 0; i < n; i++) {
        grt_io_info info = sized<grt_io_info>();
        check(get(model, i, &info));
        ports.push_back(make_port(info, keys(model, i)));
    }
    return ports;
}

/* Text of a model, which need not be UTF-8. */
nb::object text_of(const char *text)
{
    return taken(PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "surrogateescape"));
}

bool is_path(nb::handle source)
{
    return PyUnicode_Check(source.ptr()) || nb::hasattr(source, "__fspath__");
}
} // namespace

Model::Model(nb::handle source, const std::string &target, nb::kwargs options)
{
    CompileOptions compile(target, options);
    grt_model *model = nullptr;
    grt_status status;
    grt_runtime *process = runtime();
    if (is_path(source)) {
        const std::string path = path_of(source);
        nb::gil_scoped_release released;
        status = grt_model_open_with(process, path.c_str(), &compile.raw, &model);
    } else {
        /* A plan whose bytes are aligned to 4096 would be used where it is, and nothing keeps these alive:
         * they are moved off. */
        Bytes bytes(source);
        const size_t size = bytes.size();
        nb::gil_scoped_release released;
        std::vector<char> moved;
        const char *data = (const char *)bytes.data();
        if ((uintptr_t)data % 4096 == 0) {
            moved.resize(size + 8);
            const size_t offset = (uintptr_t)moved.data() % 4096 == 0 ? 8 : 0;
            std::copy_n(data, size, moved.data() + offset);
            data = moved.data() + offset;
        }
        status = grt_model_open_memory_with(process, data, size, &compile.raw, &model);
    }
    model_.reset(model);
    compile.finish(status);
    external_data_ = compile.release_external_data();
    inputs = ports_of(model, grt_model_input_count(model), grt_model_input, grt_model_input_keys);
    outputs = ports_of(model, grt_model_output_count(model), grt_model_output, grt_model_output_keys);
}

nb::list Model::described(const std::vector<Port> &ports) const
{
    nb::list list;
    for (const Port &port : ports)
        list.append(port.described);
    return list;
}

/* The first few: caches of keys and values may be hundreds. */
static std::string listed(const std::vector<Port> &ports)
{
    const size_t most = 4;
    std::string text;
    for (size_t i = 0; i < ports.size() && i < most; i++)
        text += (i ? ", " : "") + std::string(nb::str(ports[i].described).c_str());
    return ports.size() > most ? text + ", and " + std::to_string(ports.size() - most) + " more" : text;
}

std::string Model::signature() const
{
    return listed(inputs) + " -> " + listed(outputs);
}

nb::dict Model::info() const
{
    auto info = sized<grt_model_info>();
    check(grt_model_get_info(get(), &info));
    nb::dict dict;
#define X(field) dict[#field] = info.field;
    X(nodes)
    X(steps)
    X(parameters)
    X(weights_bytes)
    X(arena_bytes)
    X(flops)
    X(producer)
    X(opset)
    X(target)
    X(options)
    X(signer)
    X(verified)
#undef X
    return dict;
}

nb::dict Model::metadata() const
{
    auto metadata = sized<grt_metadata>();
    check(grt_model_metadata(get(), &metadata));
    nb::dict dict;
#define X(field) dict[#field] = text_of(metadata.field);
    X(producer_name)
    X(producer_version)
    X(domain)
    X(description)
    X(graph_name)
    X(graph_description)
#undef X
    dict["model_version"] = metadata.model_version;
    dict["ir_version"] = metadata.ir_version;
    nb::dict entries;
    for (size_t i = 0; i < metadata.n_entries; i++)
        entries[text_of(metadata.entries[i].key)] = text_of(metadata.entries[i].value);
    dict["entries"] = entries;
    return dict;
}

nb::list Model::steps() const
{
    auto info = sized<grt_model_info>();
    check(grt_model_get_info(get(), &info));
    nb::list list;
    for (int64_t i = 0; i < info.steps; i++) {
        auto step = sized<grt_step_info>();
        check(grt_model_step(get(), (size_t)i, &step));
        nb::dict row;
        row["op"] = step.op;
        row["name"] = step.name;
        row["detail"] = step.detail;
        row["flops"] = step.flops;
        list.append(row);
    }
    return list;
}

nb::dict memory_dict(const grt_memory_info &info)
{
    nb::dict dict;
#define X(field) dict[#field] = info.field;
    X(weights_bytes)
    X(kernels_bytes)
    X(activations_bytes)
    X(workspaces_bytes)
    X(inputs_bytes)
    X(values_bytes)
    X(state_bytes)
    X(total_bytes)
    X(peak_bytes)
    X(limit_bytes)
    X(process_bytes)
#undef X
    return dict;
}

nb::dict Model::predict_memory(const std::string &device, int32_t threads, int32_t contexts,
                               nb::object fallback, nb::object shapes) const
{
    std::deque<std::string> names;
    const std::vector<grt_input_shape> list = shapes_of(shapes, names);
    auto options = sized<grt_memory_options>();
    options.threads = threads;
    options.contexts = contexts;
    options.shapes = list.data();
    options.n_shapes = list.size();
    if (!fallback.is_none()) {
        names.push_back(nb::cast<std::string>(fallback));
        options.fallback = names.back().c_str();
    }
    auto info = sized<grt_memory_info>();
    grt_status status;
    {
        nb::gil_scoped_release released;
        status = grt_model_predict_memory(get(), device.c_str(), &options, &info);
    }
    check(status);
    return memory_dict(info);
}

nb::list Model::phases() const
{
    const grt_phase *phases = nullptr;
    const size_t n = grt_model_phases(get(), &phases);
    return phases_list(phases, n);
}

void model_bind(nb::module_ &module)
{
    nb::class_<Model>(module, "Model",
                      "A compiled model: a plan that was opened, or an ONNX model compiled in memory. "
                      "Immutable; any number of sessions and\n"
                      "threads may use one.")
        .def(
            "__init__",
            [](Model *self, nb::object source, const std::string &target, nb::kwargs options) {
                new (self) Model(source, target, options);
            },
            nb::arg("source"), nb::kw_only(), nb::arg("target") = "cpu", nb::arg("options"),
            nb::sig("def __init__(self, source: str | os.PathLike | bytes, *, target: str = 'cpu', "
                    "**options: typing.Any) -> None"),
            "Open a plan (.grt) or compile an ONNX model; the content says which it is.\n\n"
            "Args:\n"
            "    source: path, or the file's bytes (of an ONNX model with external data: with external_data, "
            "too).\n"
            "    target: kind of device that an ONNX model is compiled for: \"cpu\", \"cuda\".\n"
            "    **options: as graphrt.compile has them, without what is about the plan's file.\n"
            "Raises: FileError, InvalidModel, InvalidPlan, Unsupported, Untrusted, DeviceError.")
        .def("__repr__", [](const Model &self) { return "<graphrt.Model " + self.signature() + ">"; })
        .def_prop_ro(
            "inputs", [](const Model &self) { return self.described(self.inputs); },
            nb::sig("def inputs(self) -> list[graphrt._types.ValueInfo]"),
            "The inputs, in the model's order.")
        .def_prop_ro(
            "outputs", [](const Model &self) { return self.described(self.outputs); },
            nb::sig("def outputs(self) -> list[graphrt._types.ValueInfo]"),
            "The outputs, in the model's order.")
        .def_prop_ro("info", &Model::info, nb::sig("def info(self) -> dict[str, typing.Any]"),
                     "Figures: nodes, steps, parameters, weights_bytes, arena_bytes, flops, producer, opset, "
                     "target, options, ...\n"
                     "Sizes in bytes; flops and arena_bytes at the default shapes (unknown dims taken as 1).")
        .def_prop_ro("metadata", &Model::metadata, nb::sig("def metadata(self) -> dict[str, typing.Any]"),
                     "What the ONNX model says of itself, which plans keep: producer_name, producer_version, "
                     "domain, description, graph_name,\n"
                     "graph_description, model_version, ir_version, and entries, a dict of its "
                     "metadata_props. \"\" and 0 where it says nothing.")
        .def_prop_ro("steps", &Model::steps, nb::sig("def steps(self) -> list[dict[str, typing.Any]]"),
                     "The executable steps in order: op, name (source nodes), detail, flops.")
        .def("predict_memory", &Model::predict_memory, nb::arg("device") = "cpu", nb::kw_only(),
             nb::arg("threads") = 0, nb::arg("contexts") = 1, nb::arg("fallback") = nb::none(),
             nb::arg("shapes") = nb::none(),
             nb::sig("def predict_memory(self, device: str = 'cpu', *, threads: int = 0, contexts: int = 1, "
                     "fallback: str | None "
                     "= None, shapes: dict[str, collections.abc.Sequence[int]] | None = None) -> dict[str, "
                     "typing.Any]"),
             "Bytes that a session and so many contexts will have after their first run with inputs of these "
             "shapes, before "
             "anything of it is\n"
             "loaded: what Session.memory has, and process_bytes, of all of the process or GPU. total_bytes "
             "is a memory_limit "
             "that is enough.")
        .def_prop_ro("phases", &Model::phases, nb::sig("def phases(self) -> list[dict[str, typing.Any]]"),
                     "What opening did and when: name, begin_ms, end_ms.");
}
