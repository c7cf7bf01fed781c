/* SPDX-License-Identifier: Apache-2.0 */
#include "compile.h"
#include "arrays.h"
#include "model.h"
#include "options.h"

#include <nanobind/stl/string.h>

namespace
{
void compile(nb::object model, nb::object plan, const std::string &target, nb::kwargs keywords)
{
    CompileOptions options(target, keywords);
    const std::string from = path_of(model), to = path_of(plan);
    grt_status status;
    {
        nb::gil_scoped_release released;
        status = grt_compile(from.c_str(), &options.raw, to.c_str());
    }
    options.finish(status);
}

nb::list check_model(nb::object model, const std::string &device, nb::kwargs keywords)
{
    CompileOptions options(device, keywords);
    const std::string path = path_of(model);
    nb::list findings;
    size_t n = 0;
    auto each = [](void *user, const grt_finding *finding) {
        nb::gil_scoped_acquire acquired;
        ((nb::list *)user)->append(finding_to_python(*finding));
    };
    grt_status status;
    {
        nb::gil_scoped_release released;
        status = grt_check_model_with(path.c_str(), &options.raw, each, &findings, &n);
    }
    options.finish(status);
    return findings;
}

int32_t count_devices(const std::string &kind)
{
    int32_t count = 0;
    grt_status status;
    {
        nb::gil_scoped_release released;
        status = grt_device_count(kind.c_str(), &count);
    }
    check(status);
    return count;
}

nb::list passes()
{
    const char *const *names = nullptr;
    const size_t n = grt_pass_names(&names);
    nb::list list;
    for (size_t i = 0; i < n; i++)
        list.append(names[i]);
    return list;
}

void load_custom_ops(nb::object library)
{
    const std::string path = path_of(library);
    grt_status status;
    {
        nb::gil_scoped_release released;
        status = grt_custom_ops_load(path.c_str());
    }
    check(status);
}

/* A file of ONNX's: TensorProto, SequenceProto, OptionalProto or MapProto. */
nb::object read_pb(nb::object path, const std::string &kind, const std::string &element_kind)
{
    auto of = [](const std::string &name) {
        return name == "optional"   ? GRT_KIND_OPTIONAL
               : name == "sequence" ? GRT_KIND_SEQUENCE
               : name == "map"      ? GRT_KIND_MAP
                                    : GRT_KIND_TENSOR;
    };
    grt_value *value = nullptr;
    check(grt_value_read_pb(path_of(path).c_str(), of(kind), of(element_kind), &value));
    OwnedValue owned(value);
    return value_to_python(value);
}
} // namespace

void compile_bind(nb::module_ &module)
{
    module.def(
        "compile", compile, nb::arg("model"), nb::arg("plan"), nb::kw_only(), nb::arg("target") = "cpu",
        nb::arg("options"),
        nb::sig("def compile(model: str | os.PathLike, plan: str | os.PathLike, *, target: str = 'cpu', "
                "**options: typing.Any) -> None"),
        "Compile an ONNX file to a plan file, which is written whole or not at all. The same model and "
        "options give the same bytes.\n\n"
        "Args:\n"
        "    model: path of the ONNX file.\n"
        "    plan: path of the plan to be.\n"
        "    target: kind of device that it is made for: \"cpu\", \"cuda\". No such device is needed.\n"
        "    level: how much is optimised, 0 (what execution needs) to 2 (everything, the default).\n"
        "    precision: \"fp32\" (default), \"tf32\", \"fp16\", \"bf16\": what float32 models are computed "
        "in.\n"
        "    disable_passes: names of optimiser passes to leave out (graphrt.passes()).\n"
        "    enable_passes: names of passes to run although the target does not ask for them.\n"
        "    free_dims: names of symbolic dims of which every use may have a size of its own; \"*\": all.\n"
        "    strict: what breaks a rule of the standard but has one meaning is an error, too.\n"
        "    state: inputs by the outputs whose content they have in the next run, which the plan then "
        "declares for graphrt.State.\n"
        "    keep_weights: names of weights that Session.set_weights can replace; they become inputs with "
        "defaults.\n"
        "    external_weights: leave the weights in a file beside the plan.\n"
        "    allow_symlinks: follow symlinks to external data inside a Hugging Face cache.\n"
        "    external_data: files of external data by the name that the model has for them, as bytes or "
        "anything with a buffer, which must not\n"
        "        change while the model exists; the others are read from the model's directory.\n"
        "    shapes: dims of inputs by name, for algorithms that are chosen now.\n"
        "    trust: whose plans may bring code, when a plan is opened: \"all\", \"none\" or public keys.\n"
        "    progress: called with a phase's name and a fraction from 0 to 1.\n"
        "    warning: called with a Finding for what was assumed about the model.\n"
        "    cancel: called now and then; True ends the call with Cancelled.\n"
        "Raises: FileError, InvalidModel, Unsupported (lists every such node), InvalidArgument, Cancelled.");
    module.def("check", check_model, nb::arg("model"), nb::arg("device") = "cpu", nb::arg("options"),
               nb::sig("def check(model: str | os.PathLike, device: str = 'cpu', **options: typing.Any) -> "
                       "list[graphrt._types.Finding]"),
               "Everything that would keep an ONNX file from running on a kind of device, not only the "
               "first, and warnings (status \"OK\"). An\n"
               "empty list means that it runs. Options are compile's.\n\n"
               "Raises: FileError, and what compile raises for its options.");
    module.def("device_count", count_devices, nb::arg("kind"),
               "Devices of a kind (\"cuda\") in this machine; there may be 0. Starts the kind's driver.\n\n"
               "Raises: DeviceError if there is no such kind, or its module cannot be opened.");
    module.def(
        "set_threads", [](int32_t threads) { check(grt_runtime_set_threads(runtime(), threads)); },
        nb::arg("threads"),
        "Let the runs of all sessions on the CPU that are at work at a time have so many threads together. A "
        "run that would take them\n"
        "beyond that computes on its calling thread alone; none waits. 0, which is how it begins: each run "
        "has "
        "its session's threads.\n\n"
        "Raises: InvalidArgument.");
    module.def("passes", passes, nb::sig("def passes() -> list[str]"),
               "Names of the optimiser's passes in the order in which they run.");
    module.def(
        "load_custom_ops", load_custom_ops, nb::arg("path"),
        nb::sig("def load_custom_ops(path: str | os.PathLike) -> None"),
        "Open a shared object, which executes its code, and register its operators for the life of the "
        "process. They serve models that are\n"
        "opened or compiled afterwards; a plan with one needs it again. examples/custom_ops.c is such an "
        "object. To load it again does nothing.\n\n"
        "Raises: FileError, InvalidArgument (names the operator).");
    module.def(
        "read_pb", read_pb, nb::arg("path"), nb::arg("kind") = "tensor", nb::arg("element_kind") = "tensor",
        nb::sig("def read_pb(path: str | os.PathLike, kind: str = 'tensor', element_kind: str = "
                "'tensor') -> typing.Any"),
        "The value in one of ONNX's .pb files, which hold a TensorProto, SequenceProto, OptionalProto or "
        "MapProto: `kind` says which.\n\n"
        "Raises: FileError, InvalidModel.");
}
