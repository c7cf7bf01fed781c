/* SPDX-License-Identifier: Apache-2.0 */
#include "session.h"

#include "streams.h"

#include <graphrt/faults.h>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <chrono>

Session::Session(nb::object model, std::string device, int32_t threads, nb::object fallback,
                 uint64_t memory_limit, int32_t priority, int64_t multiprocessors, nb::object compile)
    : model_object_(std::move(model)), model_(nb::cast<const Model *>(model_object_)),
      device_(std::move(device))
{
    auto options = sized<grt_session_options>();
    options.threads = threads;
    options.memory_limit = memory_limit;
    options.priority = priority;
    options.multiprocessors = multiprocessors;
    std::string text, when;
    if (!compile.is_none()) {
        when = nb::cast<std::string>(compile);
        options.compile = when.c_str();
    }
    if (!fallback.is_none()) {
        text = nb::cast<std::string>(fallback);
        options.fallback = text.c_str();
    }
    grt_session *session = nullptr;
    grt_status status;
    {
        nb::gil_scoped_release released;
        status = grt_session_create(model_->get(), device_.c_str(), &options, &session);
    }
    check(status);
    session_.reset(session);
}

Session::Use::Use(const Session &session) : session_(session)
{
    std::lock_guard<std::mutex> lock(session.mutex_);
    if (session.closed_)
        raise_invalid("the session is closed");
    session.users_.push_back(std::this_thread::get_id());
}

Session::Use::~Use()
{
    std::lock_guard<std::mutex> lock(session_.mutex_);
    std::vector<std::thread::id> &users = session_.users_;
    users.erase(std::find(users.begin(), users.end(), std::this_thread::get_id()));
    if (users.empty())
        session_.unused_.notify_all();
}

bool Session::is_closed() const
{
    std::lock_guard<std::mutex> lock(mutex_);
    return closed_;
}

void Session::begin_close()
{
    std::lock_guard<std::mutex> lock(mutex_);
    if (std::find(users_.begin(), users_.end(), std::this_thread::get_id()) != users_.end())
        raise_invalid("a call of the session cannot close it: it would wait for itself");
    closed_ = true;
}

/* False: not yet, look for signals. */
bool Session::wait_unused() const
{
    nb::gil_scoped_release released;
    std::unique_lock<std::mutex> lock(mutex_);
    /* By the system's clock: to wait by the steady one libstdc++ asks for a symbol of glibc 2.30. If the
     * clock is set back meanwhile, only a Ctrl-C is seen later. */
    const auto until = std::chrono::system_clock::now() + std::chrono::milliseconds(50);
    return unused_.wait_until(lock, until, [this] { return users_.empty(); });
}

void Session::close()
{
    begin_close();
    while (!wait_unused())
        if (PyErr_CheckSignals())
            throw nb::python_error();
    nb::object sink, watch; /* let go of behind the lock, as are the others */
    std::vector<std::unique_ptr<Lane>> lanes;
    OwnedSession session;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        std::swap(sink, sink_);
        std::swap(watch, watch_);
        std::swap(lanes, idle_);
        std::swap(session, session_);
    }
    lanes.clear();
    nb::gil_scoped_release released;
    session.reset();
}

/* Each stream has lanes of its own: what an enqueued run finds wrong is told by the next one of its lane. */
std::unique_ptr<Lane> Session::take(const Use &use, void *stream)
{
    {
        std::lock_guard<std::mutex> lock(mutex_);
        for (size_t i = idle_.size(); i-- > 0;)
            if (idle_[i]->stream() == stream) {
                std::unique_ptr<Lane> lane = std::move(idle_[i]);
                idle_.erase(idle_.begin() + (ptrdiff_t)i);
                return lane;
            }
    }
    return std::make_unique<Lane>(*model_, use.get(), stream);
}

void Session::give(std::unique_ptr<Lane> lane)
{
    std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(std::move(lane));
}

nb::object Session::run_ordered(const Use &use, const std::vector<nb::object> &inputs, const Wanted &wanted,
                                const Limits &limits)
{
    struct Lease {
        Session *session;
        std::unique_ptr<Lane> lane;
        ~Lease()
        {
            session->give(std::move(lane));
        }
    } lease{this, take(use, wanted.stream)};
    const nb::object sink = profiled_ ? profile_sink() : nb::object();
    lease.lane->set_profile(sink.is_valid());
    lease.lane->set_watch(watched_ ? watch_sink() : nb::object());
    nb::object results = lease.lane->run(inputs, wanted, limits);
    if (sink.is_valid())
        sink(lease.lane->profile());
    return results;
}

void Session::profile(nb::object sink)
{
    const Use use(*this);
    if (sink.is_none())
        sink.reset();
    std::lock_guard<std::mutex> lock(mutex_);
    profiled_ = sink.is_valid();
    std::swap(sink_, sink); /* the earlier one is let go of behind the lock */
}

nb::object Session::profile_sink()
{
    std::lock_guard<std::mutex> lock(mutex_);
    return sink_;
}

void Session::watch(nb::object sink)
{
    const Use use(*this);
    if (sink.is_none())
        sink.reset();
    std::lock_guard<std::mutex> lock(mutex_);
    watched_ = sink.is_valid();
    std::swap(watch_, sink);
}

nb::object Session::watch_sink()
{
    std::lock_guard<std::mutex> lock(mutex_);
    return watch_;
}

/* None: not known before the run. */
static nb::object dims_of(grt_context *context, size_t output)
{
    grt_tensor tensor;
    nb::list dims;
    if (grt_context_output_dims(context, output, &tensor) != GRT_OK)
        return nb::none();
    for (int32_t i = 0; i < tensor.rank; i++)
        dims.append(tensor.dims[i] < 0 ? nb::object(nb::none()) : nb::object(nb::int_(tensor.dims[i])));
    return nb::tuple(dims);
}

nb::dict Session::output_dims(nb::handle inputs)
{
    const Use use(*this);
    std::vector<nb::object> ordered;
    feed_order(*model_, inputs, ordered);
    Lane lane(*model_, use.get(), nullptr);
    lane.bind(ordered);
    nb::dict dims;
    for (size_t i = 0; i < model_->outputs.size(); i++)
        dims[model_->outputs[i].key] = dims_of(lane.get(), i);
    lane.forget();
    return dims;
}

uint64_t Session::trim()
{
    const Use use(*this);
    std::vector<std::unique_ptr<Lane>> lanes;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        std::swap(lanes, idle_);
    }
    uint64_t sum = 0;
    grt_status status = GRT_OK;
    {
        nb::gil_scoped_release released;
        for (size_t i = 0; i < lanes.size() && status == GRT_OK; i++) {
            uint64_t bytes = 0;
            status = grt_context_trim(lanes[i]->get(), &bytes);
            sum += bytes;
        }
    }
    for (auto &lane : lanes)
        give(std::move(lane));
    check(status);
    return sum;
}

nb::object Session::run(nb::handle inputs, nb::handle outputs, nb::handle into, nb::handle timeout,
                        nb::handle stop, nb::handle stream, nb::handle state)
{
    const Use use(*this);
    const Limits limits(timeout, stop);
    std::vector<nb::object> ordered;
    feed_order(*model_, inputs, ordered);
    Wanted wanted;
    wanted.stream = stream_of(stream);
    if (wanted.stream && (limits.stop || limits.deadline_ms > 0 || !outputs.is_none()))
        raise_invalid(
            "a run on a stream is not waited for: timeout and stop cannot end it, and its outputs are "
            "those in `into`");
    if (!outputs.is_none()) {
        wanted.skip.assign(model_->outputs.size(), true);
        for (nb::handle name : outputs)
            wanted.skip[port_index(model_->outputs, name, "output")] = false;
    }
    if (!into.is_none()) {
        wanted.bound.resize(model_->outputs.size());
        for (auto [name, array] : nb::cast<nb::dict>(into))
            wanted.bound[port_index(model_->outputs, name, "output")] = nb::borrow(array);
    }
    if (state.is_none())
        return run_ordered(use, ordered, wanted, limits);
    State &with = *nb::cast<State *>(state);
    std::unique_lock<std::mutex> one(with.mutex(), std::try_to_lock);
    if (!one.owns_lock() || wanted.stream)
        raise_invalid(wanted.stream ? "a run with state is waited for: it goes with no stream"
                                    : "another thread is in a run or a call with this state");
    wanted.state = with.get();
    wanted.skip.resize(model_->outputs.size());
    for (size_t input : with.inputs())
        if (ordered[input].is_valid())
            raise_invalid("input '" + model_->inputs[input].name + "' belongs to the state");
    for (size_t output : with.outputs()) {
        if (!wanted.bound.empty() && wanted.bound[output].is_valid())
            raise_invalid("output '" + model_->outputs[output].name + "' belongs to the state");
        wanted.skip[output] = true;
    }
    return run_ordered(use, ordered, wanted, limits);
}

nb::dict Session::memory() const
{
    auto info = sized<grt_memory_info>();
    check(grt_session_get_memory(Use(*this).get(), &info));
    return memory_dict(info);
}

void Session::check_device() const
{
    check(grt_session_check(Use(*this).get()));
}

/* The dtypes are those of the inputs that the weights are the defaults of. */
void Session::set_weights(nb::dict weights)
{
    const Use use(*this);
    std::deque<Operand> operands;
    std::deque<std::string> texts;
    std::vector<const char *> names;
    std::vector<grt_tensor> tensors;
    for (auto [name, array] : weights) {
        texts.push_back(nb::cast<std::string>(name));
        names.push_back(texts.back().c_str());
        grt_dtype dtype = GRT_DTYPE_FLOAT;
        for (const Port &port : model_->inputs)
            if (port.name == texts.back())
                dtype = port.info.dtype;
        operands.emplace_back();
        operands.back().read(array, dtype);
        tensors.push_back(operands.back().tensor);
    }
    grt_status status;
    {
        nb::gil_scoped_release released;
        status = grt_session_set_weights(use.get(), names.data(), tensors.data(), names.size());
    }
    check(status);
}

nb::object Session::call(nb::args positional, nb::kwargs named)
{
    const Use use(*this);
    std::vector<nb::object> ordered;
    feed_order(*model_, positional, ordered);
    for (auto [name, value] : named) {
        nb::object &place = ordered[port_index(model_->inputs, name, "input")];
        if (place.is_valid())
            raise_invalid("input '" + nb::cast<std::string>(name) + "' is given twice");
        place = nb::borrow(value);
    }
    nb::object results = run_ordered(use, ordered, Wanted(), Limits());
    nb::object values = taken(PyDict_Values(results.ptr()));
    if (PyList_Size(values.ptr()) == 1)
        return values[nb::int_(0)];
    return nb::tuple(values);
}

nb::dict Session::load_info() const
{
    const Use use(*this);
    auto info = sized<grt_load_info>();
    check(grt_session_get_load(use.get(), &info));
    nb::dict dict;
#define X(field) dict[#field] = info.field;
    X(device)
    X(passes)
    X(cache_hits)
    X(cache_misses)
    X(heuristics)
    X(searches)
    X(host_bytes)
    X(peer_bytes)
    X(read_bytes)
    X(pinned_bytes)
    X(warnings)
    X(plan_rows)
    X(plan_hits)
    X(rejected)
    X(plan_note)
    X(code_plan)
    X(code_store)
    X(code_compiled)
    X(code_waiting)
    X(code_interpreted)
#undef X
    return dict;
}

namespace
{
/* A progress function of Python's; false from it, or an exception, asks to stop. */
struct Progress {
    nb::object call;
    std::exception_ptr raised;
    static bool report(void *user, const char *what, double fraction)
    {
        auto *self = (Progress *)user;
        nb::gil_scoped_acquire acquired;
        try {
            nb::object answer = self->call(what, fraction);
            return answer.is_none() || nb::cast<bool>(answer);
        } catch (...) {
            self->raised = std::current_exception();
            return false;
        }
    }
};

nb::dict report_dict(const grt_tune_report &report)
{
    nb::dict dict;
#define X(field) dict[#field] = report.field;
    X(steps)
    X(choices)
    X(tuned)
    X(known)
    X(improved)
    X(before_ms)
    X(after_ms)
    X(stopped)
    X(out_of_time)
#undef X
    return dict;
}
} // namespace

nb::dict Session::tune(nb::handle inputs, double seconds, bool again, nb::object progress)
{
    const Use use(*this);
    std::vector<nb::object> ordered;
    feed_order(*model_, inputs, ordered);
    Lane lane(*model_, use.get(), nullptr);
    lane.bind(ordered);
    Progress callback{progress, {}};
    auto options = sized<grt_tune_options>();
    options.seconds = seconds;
    options.again = again;
    if (!progress.is_none()) {
        options.progress = Progress::report;
        options.user = &callback;
    }
    auto report = sized<grt_tune_report>();
    grt_status status;
    {
        nb::gil_scoped_release released;
        status = grt_context_tune(lane.get(), &options, &report);
    }
    if (callback.raised)
        std::rethrow_exception(callback.raised);
    check(status);
    return report_dict(report);
}

static nb::list session_phases(const Session &self)
{
    const Session::Use use(self);
    const grt_phase *phases = nullptr;
    const size_t n = grt_session_phases(use.get(), &phases);
    return phases_list(phases, n);
}

static nb::object model_of(nb::object source, const std::string &device, nb::kwargs options)
{
    if (!nb::isinstance<Model>(source)) {
        if (!options.contains("target"))
            options["target"] = device_kind(device);
        return nb::type<Model>()(source, **options);
    }
    if (options.size() > 0)
        raise_invalid("options for compiling belong to graphrt.Model, as the model is one already");
    return source;
}

void session_bind(nb::module_ &module, nb::class_<State> &states)
{
    states.def(
        "__init__",
        [](State *self, nb::object session, nb::handle pairs, nb::handle initial, bool in_place) {
            const Session &on = *nb::cast<const Session *>(session);
            const Session::Use use(on);
            new (self) State(session, on.native_model(), use.get(), pairs, initial, in_place);
        },
        nb::arg("session"), nb::arg("pairs") = nb::none(), nb::arg("initial") = nb::none(), nb::kw_only(),
        nb::arg("in_place") = false,
        nb::sig("def __init__(self, session: Session, pairs: dict[str, str] | None = None, initial: "
                "dict[str, typing.Any] | None = None, *, in_place: bool = False) -> None"),
        "Args:\n"
        "    session: that it is for, with the other sessions of its model on that device.\n"
        "    pairs: inputs by the outputs that they get their content from; None: those that the model "
        "declares (graphc optimize --state).\n"
        "    initial: arrays by input for the first run; others begin with zeros, where their dims are "
        "fixed.\n"
        "    in_place: outputs are written over inputs where the model's steps allow it. A run that "
        "fails "
        "leaves no content then.\n"
        "Raises: InvalidArgument (names, dtypes, an unknown size), OutOfMemory.");
    nb::class_<Session>(
        module, "Session",
        "A model on a device, ready to run. Any number of threads may run it at once: each run in flight has "
        "a context of its\n"
        "own, which is kept for the next one. The GIL is free while a model is opened, made ready and run.")
        .def(
            "__init__",
            [](Session *self, nb::object model, const std::string &device, int32_t threads,
               nb::object fallback, uint64_t memory_limit, int32_t priority, int64_t multiprocessors,
               nb::object compile, nb::kwargs options) {
                new (self) Session(model_of(model, device, options), device, threads, fallback, memory_limit,
                                   priority, multiprocessors, compile);
            },
            nb::arg("model"), nb::arg("device") = "cpu", nb::kw_only(), nb::arg("threads") = 0,
            nb::arg("fallback") = nb::none(), nb::arg("memory_limit") = 0, nb::arg("priority") = 0,
            nb::arg("multiprocessors") = 0, nb::arg("compile") = nb::none(), nb::arg("options"),
            nb::sig("def __init__(self, model: str | os.PathLike | bytes | Model, device: str = 'cpu', *, "
                    "threads: int = 0, "
                    "fallback: str | None = None, memory_limit: int = 0, priority: int = 0, multiprocessors: "
                    "int = "
                    "0, compile: str | None = None, **options: "
                    "typing.Any) -> None"),
            "Make a model ready on a device.\n\n"
            "Args:\n"
            "    model: path of a plan or ONNX model, its bytes, or a graphrt.Model.\n"
            "    device: \"cpu\", \"cuda:0\", ...\n"
            "    threads: CPU threads of one operator, at most 1024; 0: one per physical core. With several "
            "Python threads that run at\n"
            "        once, 1 is best.\n"
            "    fallback: \"cpu\": ops that the device lacks run there; None: they are an error that lists "
            "them.\n"
            "    memory_limit: bytes of the device's memory that it may have, on the CPU of the host's: "
            "weights, "
            "activations, workspaces; what\n"
            "        goes beyond raises OutOfMemory. 0: none. Model.predict_memory says what is needed.\n"
            "    priority: of its streams on a GPU, 0 to 5: higher ones go first.\n"
            "    multiprocessors: of the GPU, to compute on these alone, beside sessions that have others; "
            "0: "
            "all.\n"
            "    compile: when kernels are generated that neither the plan nor the cache has: "
            "\"background\", "
            "while runs interpret them,\n"
            "        \"first\", so that nothing changes later, or \"never\". None: what GRAPHRT_COMPILE "
            "says, "
            "else \"background\".\n"
            "    **options: for ONNX models, as graphrt.compile has them.\n"
            "Raises: what graphrt.Model raises; DeviceError (names the devices that exist), Unsupported "
            "(lists every op without a\n"
            "    kernel), OutOfMemory.")
        .def(
            "run", &Session::run, nb::arg("inputs"), nb::arg("outputs") = nb::none(),
            nb::arg("into") = nb::none(), nb::kw_only(), nb::arg("timeout") = nb::none(),
            nb::arg("stop") = nb::none(), nb::arg("stream") = nb::none(), nb::arg("state") = nb::none(),
            nb::sig("def run(self, inputs: graphrt._types.Inputs, outputs: collections.abc.Iterable[str] | "
                    "None = None, into: dict[str, "
                    "typing.Any] | None = None, *, timeout: float | None = None, stop: Stop | None = None, "
                    "stream: typing.Any = None, state: State | None = None) -> dict[str, typing.Any]"),
            "Run the model.\n\n"
            "Args:\n"
            "    inputs: a dict by name, a list or tuple in the model's order, or the array itself where "
            "there is one input. Arrays are\n"
            "        NumPy's or anything with the buffer protocol or DLPack (torch, JAX, CuPy). Their "
            "memory is used where it is if it is\n"
            "        dense, row-major and aligned, else a copy is. Dtypes must be the model's: only lists "
            "and numbers, which have none,\n"
            "        are converted. Strings: arrays of str, bytes or objects. Sequences: lists. Maps: dicts. "
            "Optionals: None or the value.\n"
            "        Inputs with a default may be left out.\n"
            "    outputs: names of those that are wanted; None: all.\n"
            "    into: arrays by name that outputs are written into, of exactly their dims. They must not "
            "overlap inputs. A run that ends\n"
            "        early may have written parts of them. Or functions of a dtype's name and a shape, which "
            "give such an array "
            "when the\n"
            "        size is known; they are not asked for arrays without elements.\n"
            "    timeout: seconds that the run may take; None: no limit.\n"
            "    stop: a graphrt.Stop that may end it.\n"
            "    stream: on GPUs, a CUDA stream (torch's, CuPy's, an address as int) that the run is "
            "enqueued on, "
            "behind what is there: the\n"
            "        call does not wait. Inputs and `into` must be in the GPU's memory, and stay until the "
            "stream "
            "is done; outputs that are\n"
            "        not in `into` are left out. What goes wrong on the GPU is raised by the next run on "
            "that "
            "stream. None: the run is over\n"
            "        when this returns. In both cases it begins when the streams of CUDA inputs are done, as "
            "DLPack "
            "has it.\n"
            "    state: a graphrt.State that the run begins with and leaves its own in; its inputs are not "
            "given, its outputs not returned.\n"
            "Returns: outputs by name in the model's order: new NumPy arrays that own their memory, lists, "
            "None, or what `into` has.\n"
            "Raises: InvalidArgument (names, dtypes, dims; values that an op refuses), OutOfMemory, "
            "DeviceError, Unsupported;\n"
            "    DeadlineExceeded, Cancelled. Ctrl-C ends a run of the main thread: KeyboardInterrupt.")
        .def("__call__", &Session::call, nb::arg("inputs"), nb::arg("named"),
             nb::sig("def __call__(self, *inputs: typing.Any, **named: typing.Any) -> typing.Any"),
             "Run the model on inputs by position or name; the output itself if there is one, else a tuple "
             "in the model's order.")
        .def(
            "watch", &Session::watch, nb::arg("sink").none(),
            nb::sig(
                "def watch(self, sink: collections.abc.Callable[[dict[str, typing.Any]], typing.Any] | None) "
                "-> None"),
            "Call `sink` in each run, on the thread that runs, with each tensor that a step makes: a dict of "
            "step, "
            "op, nodes (of the ONNX\n"
            "model, joined by '+'), tensor (its name) and value, a new array. Runs go step by step then: for "
            "debugging. It must not run the session.\n"
            "None: no more.")
        .def("output_dims", &Session::output_dims, nb::arg("inputs"),
             nb::sig(
                 "def output_dims(self, inputs: graphrt._types.Inputs) -> dict[str, tuple[int | None, ...] | "
                 "None]"),
             "Dims that the outputs of a run with these inputs will have, without running: None for a dim "
             "that "
             "depends on data, and in place of\n"
             "all where an output is no tensor.")
        .def("close", &Session::close,
             "Release all that it has: no call begins any more, those of other threads that have begun end "
             "first (a graphrt.Stop ends\n"
             "them early). Pools and states that it was given to keep what they need of it. Closing it again "
             "does "
             "nothing; other\n"
             "calls raise InvalidArgument then, while model, device, inputs, outputs and closed stay. `with` "
             "closes at its end.\n\n"
             "Raises: InvalidArgument in a function that a run calls, as it would wait for itself. Ctrl-C "
             "ends "
             "the wait; it is closed\n"
             "then, and a further close releases.")
        .def(
            "__enter__",
            [](nb::handle self) {
                const Session::Use use(nb::cast<const Session &>(self));
                return nb::borrow(self);
            },
            nb::sig("def __enter__(self) -> Session"))
        .def(
            "__exit__", [](Session &self, nb::args) { self.close(); }, nb::arg("raised"),
            nb::sig("def __exit__(self, *raised: typing.Any) -> None"))
        .def_prop_ro("closed", &Session::is_closed, "True once close was called.")
        .def("trim", &Session::trim,
             "Give back the memory of contexts that are idle: activations, workspaces, what is prepared. The "
             "next "
             "runs prepare anew.\n"
             "Returns: bytes of the device's memory.")
        .def("tune", &Session::tune, nb::arg("inputs"), nb::kw_only(), nb::arg("seconds") = 60.0,
             nb::arg("again") = false, nb::arg("progress") = nb::none(),
             nb::sig("def tune(self, inputs: graphrt._types.Inputs, *, seconds: float = 60.0, again: bool = "
                     "False, progress: "
                     "collections.abc.Callable[[str, float], bool | None] | None = None) -> dict[str, "
                     "typing.Any]"),
             "Measure the algorithms that the device's libraries offer at the dims of `inputs`, and keep the "
             "fastest in the user's cache, where\n"
             "sessions that are made from now on find it. The device should have nothing else to do.\n\n"
             "Args:\n"
             "    seconds: to be spent at most.\n"
             "    again: measure what was tuned before, too.\n"
             "    progress: called with what is measured and a fraction; False stops.\n"
             "Returns: steps (0: nothing to tune on this device), choices, tuned, known, improved, "
             "before_ms, after_ms, stopped, out_of_time.")
        .def(
            "profile", &Session::profile, nb::arg("sink").none(),
            nb::sig("def profile(self, sink: collections.abc.Callable[[list[dict[str, typing.Any]]], "
                    "typing.Any] | None) -> None"),
            "Call `sink` behind each run, on the thread that ran, with what the run did: dicts of kind "
            "(\"run\", \"prepare\", \"compute\", \"step\"),\n"
            "step (its number, or -1), op, name, begin_ms and end_ms on one clock, on_device. Steps are then "
            "timed one by one, which costs time.\n"
            "None: no more, which costs nothing.")
        .def("__repr__",
             [](const Session &self) {
                 return "<graphrt.Session on " + std::string(self.device()) + ": " +
                        self.native_model().signature() + ">";
             })
        .def_prop_ro("model", &Session::model, nb::sig("def model(self) -> Model"), "The model that it runs.")
        .def_prop_ro("device", &Session::device, "The device's name.")
        .def_prop_ro(
            "threads", [](const Session &self) { return grt_session_threads(Session::Use(self).get()); },
            "CPU threads that one operator may use: what was asked for, or as many as could be made.")
        .def_prop_ro(
            "inputs",
            [](const Session &self) { return self.native_model().described(self.native_model().inputs); },
            nb::sig("def inputs(self) -> list[graphrt._types.ValueInfo]"), "The model's inputs.")
        .def_prop_ro(
            "outputs",
            [](const Session &self) { return self.native_model().described(self.native_model().outputs); },
            nb::sig("def outputs(self) -> list[graphrt._types.ValueInfo]"), "The model's outputs.")
        .def_prop_ro("load_info", &Session::load_info,
                     nb::sig("def load_info(self) -> dict[str, typing.Any]"),
                     "What becoming ready took: bytes of weights, algorithms found and asked for, warnings.")
        .def_prop_ro(
            "memory", &Session::memory, nb::sig("def memory(self) -> dict[str, typing.Any]"),
            "Bytes of the device's memory that it has now, on the CPU of the host's: weights, kernels, "
            "activations, workspaces, inputs,\n"
            "values, state, total, peak, limit.")
        .def("set_weights", &Session::set_weights, nb::arg("weights"),
             nb::sig("def set_weights(self, weights: dict[str, typing.Any]) -> None"),
             "Replace weights by name, all or none, for the runs that begin from now on. Each is an input "
             "with a "
             "default, as the ONNX model or\n"
             "keep_weights made it.\n\n"
             "Raises: InvalidArgument (a name, a type).")
        .def("check", &Session::check_device,
             "Raise DeviceError, with the error that it was lost by, if its device has failed.")
        .def_prop_ro("phases", session_phases, nb::sig("def phases(self) -> list[dict[str, typing.Any]]"),
                     "What making it ready did and when: name, begin_ms, end_ms.");
}
