/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include "session.h"
#include "stop.h"

#include <graphrt/faults.h>
#include <graphrt/processes.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <deque>
#include <time.h>
#include <mutex>

namespace
{
bool only_tensors(const std::vector<Port> &ports)
{
    return std::all_of(ports.begin(), ports.end(),
                       [](const Port &port) { return port.info.kind == GRT_KIND_TENSOR; });
}

double deadline_of(nb::handle timeout)
{
    return Limits(timeout, nb::none()).deadline_ms;
}

/* How a request is served. */
struct Order {
    size_t lane;
    int32_t priority;
    nb::object state; /* None, or a State */
};

/* The inputs of one request: views of arrays, or, where one of them is a sequence or optional, copies of all.
 */
class Inputs
{
  public:
    Inputs(const Model &model, const std::vector<nb::object> &given, const Order &order);
    grt_submission submission(double deadline_ms) const
    {
        auto submission = sized<grt_submission>();
        submission.lane = order_.lane;
        submission.inputs = views_ ? tensors_.data() : nullptr;
        submission.values = views_ ? nullptr : pointers_.data();
        submission.n_inputs = tensors_.size();
        submission.deadline_ms = deadline_ms;
        submission.priority = order_.priority;
        submission.state = with_ ? with_->get() : nullptr;
        return submission;
    }
    /* Outputs of the state are not the request's to give. */
    bool gives(size_t output) const
    {
        return !with_ ||
               std::find(with_->outputs().begin(), with_->outputs().end(), output) == with_->outputs().end();
    }

  private:
    Order order_;
    State *with_;
    bool views_;
    std::unique_ptr<Operand[]> operands_;
    std::vector<grt_tensor> tensors_;
    std::vector<OwnedValue> values_;
    std::vector<const grt_value *> pointers_;
};

Inputs::Inputs(const Model &model, const std::vector<nb::object> &given, const Order &order)
    : order_(order), with_(order.state.is_none() ? nullptr : nb::cast<State *>(order.state)),
      views_(only_tensors(model.inputs)), operands_(new Operand[given.size() + 1]),
      tensors_(given.size(), sized<grt_tensor>()), values_(given.size()), pointers_(given.size())
{
    if (with_)
        for (size_t input : with_->inputs())
            if (input < given.size() && given[input].is_valid())
                raise_invalid("input '" + model.inputs[input].name + "' belongs to the state");
    for (size_t i = 0; i < given.size(); i++) {
        const grt_io_info &info = model.inputs[i].info;
        if (!given[i].is_valid() || (given[i].is_none() && info.kind != GRT_KIND_OPTIONAL))
            continue;
        if (views_) {
            operands_[i].read(given[i], info.dtype);
            tensors_[i] = operands_[i].tensor;
        } else {
            values_[i] = value_from_python(given[i], model.inputs[i].type());
            pointers_[i] = values_[i].get();
        }
    }
}

nb::object output_of(grt_request *request, const Port &port, size_t index)
{
    if (port.info.kind != GRT_KIND_TENSOR) {
        const grt_value *value = nullptr;
        check(grt_request_get_output_value(request, index, &value));
        return value_to_python(value);
    }
    grt_tensor tensor;
    check(grt_request_get_output(request, index, &tensor));
    return array_copy(tensor);
}

nb::object outputs_of(grt_request *request, const Model &model, const Inputs &inputs)
{
    nb::object results = taken(PyDict_New());
    for (size_t i = 0; i < model.outputs.size(); i++)
        if (inputs.gives(i) && PyDict_SetItem(results.ptr(), model.outputs[i].key.ptr(),
                                              output_of(request, model.outputs[i], i).ptr()) != 0)
            throw nb::python_error();
    return results;
}

/* A request that nobody waits for: `done` gets its outputs, or the exception. It lives until it is answered.
 */
class Call
{
  public:
    Call(const Model &model, const std::vector<nb::object> &ordered, const Order &order, Stop *stop,
         nb::object stop_object, nb::object done)
        : model_(model), inputs_(model, ordered, order), stop_(stop), stop_object_(stop_object), done_(done)
    {
    }
    static void answered(void *user, grt_request *request)
    {
        nb::gil_scoped_acquire acquired;
        std::unique_ptr<Call> call((Call *)user);
        OwnedRequest owned(request);
        if (call->stop_)
            call->stop_->remove(request);
        try {
            call->tell(request);
        } catch (nb::python_error &error) {
            error.discard_as_unraisable("the callback of a request");
        }
    }
    grt_submission submission(double deadline_ms)
    {
        grt_submission s = inputs_.submission(deadline_ms);
        s.done = answered;
        s.user = this;
        return s;
    }

  private:
    void tell(grt_request *request)
    {
        nb::object result = nb::none(), error = nb::none();
        try {
            check(grt_request_wait_until(request, 0));
            result = outputs_of(request, model_, inputs_);
        } catch (nb::python_error &raised) {
            error = nb::borrow(raised.value());
        }
        done_(result, error);
    }

    const Model &model_;
    Inputs inputs_;
    Stop *stop_;
    nb::object stop_object_, done_;
};

grt_padding padding_of(const std::string &name)
{
    static const char *const names[] = {"power of two", "full", "none"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (name == names[i])
            return (grt_padding)i;
    raise_invalid("padding is 'power of two', 'full' or 'none', not '" + name + "'");
}

grt_pool_options pool_options(nb::kwargs given)
{
    auto options = sized<grt_pool_options>();
    for (auto [key, value] : given) {
        const std::string name = nb::cast<std::string>(key);
        if (name == "contexts")
            options.contexts = nb::cast<int32_t>(value);
        else if (name == "queue")
            options.queue = nb::cast<int32_t>(value);
        else if (name == "share")
            options.share = nb::cast<double>(value);
        else if (name == "max_batch")
            options.max_batch = nb::cast<int32_t>(value);
        else if (name == "max_delay")
            options.max_delay_ms = 1e3 * nb::cast<double>(value);
        else if (name == "padding")
            options.padding = padding_of(nb::cast<std::string>(value));
        else if (name == "device_runs")
            options.device_runs = nb::cast<int32_t>(value);
        else
            throw nb::type_error(("a pool has no option '" + name + "'").c_str());
    }
    return options;
}

/* Sessions that cannot be closed while a lane is made of them; it keeps them itself then. */
struct Sessions {
    explicit Sessions(nb::list sessions)
    {
        for (nb::handle session : sessions) {
            uses.emplace_back(nb::cast<const Session &>(session));
            raw.push_back(uses.back().get());
        }
        if (raw.empty())
            raise_invalid("a lane has at least one session");
    }
    std::deque<Session::Use> uses;
    std::vector<grt_session *> raw;
};

class Pool
{
  public:
    explicit Pool(int32_t device_runs);
    ~Pool()
    {
        nb::gil_scoped_release released;
        pool_.reset();
    }
    size_t add(nb::list sessions, nb::kwargs options);
    size_t add_processes(nb::object model, nb::list devices, nb::dict processes, nb::kwargs options);
    nb::object run(nb::handle inputs, nb::handle timeout, nb::handle stop, int32_t priority, bool watch,
                   size_t lane, nb::object state);
    void submit(nb::handle inputs, nb::handle timeout, nb::object stop, int32_t priority, size_t lane,
                nb::object state, bool wait, nb::object done);
    nb::dict stats(size_t lane);
    nb::dict times(const std::string &phase, size_t lane);
    /* grt_pool_drain or grt_pool_shutdown */
    void finish(grt_status (*how)(grt_pool *pool, double deadline_ms), nb::handle timeout);
    void drain(nb::handle timeout)
    {
        finish(grt_pool_drain, timeout);
    }
    void shutdown(nb::handle timeout)
    {
        finish(grt_pool_shutdown, timeout);
    }
    void cancel()
    {
        grt_pool_cancel(pool_.get());
    }
    void replace(size_t index, nb::object session, size_t lane);
    nb::dict process(size_t index, size_t lane);

  private:
    struct PoolLane {
        nb::object owner; /* keeps the model alive */
        const Model *model;
    };
    /* No lane is ever removed, and none moves. */
    const PoolLane &lane_at(size_t index)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (index >= lanes_.size())
            raise_invalid("the pool has no lane " + std::to_string(index) + ", but " +
                          std::to_string(lanes_.size()) + " of them");
        return *lanes_[index];
    }
    size_t keep_lane(size_t lane, nb::object owner, const Model *model)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (lanes_.size() <= lane)
            lanes_.resize(lane + 1);
        lanes_[lane].reset(new PoolLane{owner, model});
        return lane;
    }

    std::mutex mutex_, adding_;
    std::vector<std::unique_ptr<PoolLane>> lanes_;
    OwnedPool pool_;
};

Pool::Pool(int32_t device_runs)
{
    auto options = sized<grt_pool_options>();
    options.device_runs = device_runs;
    grt_pool *pool = nullptr;
    check(grt_pool_create(nullptr, 0, &options, &pool));
    pool_.reset(pool);
}

size_t Pool::add(nb::list sessions, nb::kwargs given)
{
    const Sessions used(sessions);
    const grt_pool_options options = pool_options(given);
    const Model *model = &nb::cast<const Session &>(sessions[0]).native_model();
    size_t lane = 0;
    grt_status status;
    {
        nb::gil_scoped_release released;
        std::lock_guard<std::mutex> lock(adding_);
        status = grt_pool_add(pool_.get(), used.raw.data(), used.raw.size(), &options, &lane);
    }
    check(status);
    return keep_lane(lane, nb::list(sessions), model);
}

const char *text_of(nb::dict options, const char *name, std::string &kept)
{
    if (!options.contains(name) || nb::object(options[name]).is_none())
        return nullptr;
    kept = nb::cast<std::string>(nb::str(options[name]));
    return kept.c_str();
}

template <typename Number> Number number_of(nb::dict options, const char *name)
{
    return options.contains(name) ? nb::cast<Number>(options[name]) : Number();
}

size_t Pool::add_processes(nb::object owner, nb::list devices, nb::dict given, nb::kwargs kwargs)
{
    const Model &model = nb::cast<const Model &>(owner);
    const grt_pool_options options = pool_options(kwargs);
    std::string program, custom_ops, fallback;
    std::vector<std::string> names;
    std::vector<const char *> raw;
    for (nb::handle device : devices)
        names.push_back(nb::cast<std::string>(device));
    for (const std::string &name : names)
        raw.push_back(name.c_str());
    auto processes = sized<grt_process_options>();
    processes.program = text_of(given, "program", program);
    processes.custom_ops = text_of(given, "custom_ops", custom_ops);
    processes.fallback = text_of(given, "fallback", fallback);
    processes.threads = number_of<int32_t>(given, "threads");
    processes.memory_limit = number_of<uint64_t>(given, "memory_limit");
    processes.priority = number_of<int32_t>(given, "priority");
    processes.multiprocessors = number_of<int64_t>(given, "multiprocessors");
    processes.start_timeout_ms = 1e3 * number_of<double>(given, "start_timeout");
    processes.grace_ms = 1e3 * number_of<double>(given, "grace");
    processes.most_failures = number_of<int32_t>(given, "most_failures");
    size_t lane = 0;
    grt_status status;
    {
        nb::gil_scoped_release released;
        std::lock_guard<std::mutex> lock(adding_);
        status = grt_pool_add_processes(pool_.get(), model.get(), raw.data(), raw.size(), &options,
                                        &processes, &lane);
    }
    check(status);
    return keep_lane(lane, owner, &model);
}

nb::object Pool::run(nb::handle inputs, nb::handle timeout, nb::handle stop, int32_t priority, bool watch,
                     size_t lane, nb::object state)
{
    const Limits limits(timeout, stop);
    const Model &model = *lane_at(lane).model;
    std::vector<nb::object> ordered;
    feed_order(model, inputs, ordered);
    const Inputs given(model, ordered, {lane, priority, state});
    grt_request *request = nullptr;
    grt_status status;
    {
        nb::gil_scoped_release released;
        const grt_submission submission = given.submission(limits.deadline_ms);
        status = grt_pool_submit_with(pool_.get(), &submission, &request);
    }
    check(status);
    OwnedRequest owned(request);
    status = wait_within(request, limits, watch);
    if (status != GRT_OK) /* in a callback of the pool it is refused, and the release waits */
        grt_request_cancel(request);
    check(status);
    return outputs_of(request, model, given);
}

/* With a Stop, the queue's room is looked for again and again: waiting for it would keep others out of the
 * Stop. */
grt_status submit_stoppable(grt_pool *pool, const grt_submission &submission, Stop &stop, bool wait)
{
    const timespec pause{0, 200 * 1000};
    for (;;) {
        const grt_status status =
            stop.add_made([&](grt_request **made) { return grt_pool_try_submit(pool, &submission, made); });
        if (status != GRT_STATUS_BUSY || !wait || stop.is_set() ||
            (submission.deadline_ms != 0 && grt_clock_ms() >= submission.deadline_ms))
            return status;
        nanosleep(&pause, nullptr);
    }
}

void Pool::submit(nb::handle inputs, nb::handle timeout, nb::object stop, int32_t priority, size_t lane,
                  nb::object state, bool wait, nb::object done)
{
    const Limits limits(timeout, stop);
    const Model &model = *lane_at(lane).model;
    std::vector<nb::object> ordered;
    feed_order(model, inputs, ordered);
    auto call = std::make_unique<Call>(model, ordered, Order{lane, priority, state}, limits.stop, stop, done);
    grt_status status;
    {
        nb::gil_scoped_release released;
        const grt_submission submission = call->submission(limits.deadline_ms);
        if (limits.stop)
            status = submit_stoppable(pool_.get(), submission, *limits.stop, wait);
        else
            status = wait ? grt_pool_submit_with(pool_.get(), &submission, nullptr)
                          : grt_pool_try_submit(pool_.get(), &submission, nullptr);
        if (status == GRT_OK)
            (void)call.release(); /* the callback's, which may have been */
    }
    check(status);
}

nb::dict Pool::stats(size_t lane)
{
    auto found = sized<grt_pool_stats>();
    check(grt_pool_get_stats(pool_.get(), lane, &found));
    nb::dict row;
    row["submitted"] = found.submitted;
    row["succeeded"] = found.succeeded;
    row["failed"] = found.failed;
    row["cancelled"] = found.cancelled;
    row["late"] = found.late;
    row["refused"] = found.refused;
    row["batches"] = found.batches;
    row["batch_rows"] = found.batch_rows;
    row["padded_rows"] = found.padded_rows;
    row["waiting"] = found.waiting;
    row["running"] = found.running;
    return row;
}

nb::dict Pool::times(const std::string &phase, size_t lane)
{
    static const char *const phases[] = {"queue", "copy in", "run", "copy out", "total"};
    auto found = sized<grt_histogram>();
    int which = 0;
    while (which <= GRT_POOL_TOTAL && phase != phases[which])
        which++;
    if (which > GRT_POOL_TOTAL)
        raise_invalid("a phase is 'queue', 'copy in', 'run', 'copy out' or 'total', not '" + phase + "'");
    check(grt_pool_get_histogram(pool_.get(), lane, (grt_pool_phase)which, &found));
    nb::dict row;
    row["count"] = found.count;
    row["sum_ms"] = found.sum_ms;
    row["max_ms"] = found.max_ms;
    row["p50_ms"] = found.p50_ms;
    row["p90_ms"] = found.p90_ms;
    row["p95_ms"] = found.p95_ms;
    row["p99_ms"] = found.p99_ms;
    row["p99_9_ms"] = found.p99_9_ms;
    nb::list buckets;
    for (size_t i = 0; i < GRT_HISTOGRAM_BUCKETS; i++)
        if (found.buckets[i])
            buckets.append(nb::make_tuple(grt_histogram_limit_ms(i), found.buckets[i]));
    row["buckets"] = buckets;
    return row;
}

void Pool::finish(grt_status (*how)(grt_pool *pool, double deadline_ms), nb::handle timeout)
{
    const double deadline_ms = deadline_of(timeout);
    grt_status status;
    {
        nb::gil_scoped_release released;
        status = how(pool_.get(), deadline_ms);
    }
    check(status);
}

void Pool::replace(size_t index, nb::object session, size_t lane)
{
    const Session::Use use(nb::cast<const Session &>(session));
    grt_status status;
    {
        nb::gil_scoped_release released;
        status = grt_pool_replace_session(pool_.get(), lane, index, use.get());
    }
    check(status);
}

nb::dict Pool::process(size_t index, size_t lane)
{
    auto found = sized<grt_process_info>();
    check(grt_pool_get_process(pool_.get(), lane, index, &found));
    nb::dict row;
    row["pid"] = found.pid;
    row["started"] = found.started;
    row["lost"] = found.lost;
    return row;
}
} // namespace

void pool_bind(nb::module_ &module)
{
    nb::class_<Pool>(module, "Pool", "The library's pool of contexts; graphrt.Pool is what programs use.")
        .def(nb::init<int32_t>(), nb::arg("device_runs"))
        .def("add", &Pool::add, nb::arg("sessions"), nb::arg("options"),
             nb::sig("def add(self, sessions: list[Session], **options: typing.Any) -> int"),
             "The number of a new lane.")
        .def(
            "add_processes", &Pool::add_processes, nb::arg("model"), nb::arg("devices"), nb::arg("processes"),
            nb::arg("options"),
            nb::sig(
                "def add_processes(self, model: Model, devices: list[str], processes: dict[str, typing.Any], "
                "**options: typing.Any) -> int"),
            "The number of a new lane, whose sessions are in processes.")
        .def(
            "run", &Pool::run, nb::arg("inputs"), nb::arg("timeout").none(), nb::arg("stop").none(),
            nb::arg("priority"), nb::arg("watch"), nb::arg("lane"), nb::arg("state").none(),
            nb::sig("def run(self, inputs: typing.Any, timeout: float | None, stop: Stop | None, priority: "
                    "int, watch: bool, lane: int, state: State | None) -> dict[str, typing.Any]"),
            "Submit and wait, without the GIL. Any number of threads at once. watch: handlers of signals get "
            "their turn meanwhile.")
        .def("submit", &Pool::submit, nb::arg("inputs"), nb::arg("timeout").none(), nb::arg("stop").none(),
             nb::arg("priority"), nb::arg("lane"), nb::arg("state").none(), nb::arg("wait"), nb::arg("done"),
             nb::sig("def submit(self, inputs: typing.Any, timeout: float | None, stop: Stop | None, "
                     "priority: int, lane: int, state: State | None, wait: bool, done: "
                     "typing.Callable[[typing.Any, typing.Any], typing.Any]) -> None"),
             "Queue a run; where the queue is full, wait, or raise Busy. done(outputs, error) is called "
             "once, by a "
             "thread of the pool.")
        .def("stats", &Pool::stats, nb::arg("lane"), "Counts of a lane.")
        .def("times", &Pool::times, nb::arg("phase"), nb::arg("lane"), "Times of a lane's requests.")
        .def("drain", &Pool::drain, nb::arg("timeout").none(),
             nb::sig("def drain(self, timeout: float | None) -> None"), "Wait for what was submitted.")
        .def("shutdown", &Pool::shutdown, nb::arg("timeout").none(),
             nb::sig("def shutdown(self, timeout: float | None) -> None"), "Take no more, and end in time.")
        .def("cancel", &Pool::cancel, nb::call_guard<nb::gil_scoped_release>(), "Cancel what was submitted.")
        .def("replace", &Pool::replace, nb::arg("index"), nb::arg("session"), nb::arg("lane"),
             nb::sig("def replace(self, index: int, session: Session, lane: int) -> None"),
             "Let another session serve in the place of one.")
        .def("process", &Pool::process, nb::arg("index"), nb::arg("lane"), "About a process of a lane.");
}
