/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

#include "stop.h"

#include <algorithm>

namespace
{
class Pool
{
  public:
    Pool(nb::list sessions, int32_t contexts, int32_t queue);
    ~Pool()
    {
        nb::gil_scoped_release released;
        pool_.reset();
    }
    nb::object run(nb::handle inputs, nb::handle timeout, nb::handle stop, int32_t priority, bool watch);

  private:
    nb::object sessions_; /* keeps the model alive */
    const Model *model_;
    OwnedPool pool_;
};

Pool::Pool(nb::list sessions, int32_t contexts, int32_t queue) : sessions_(sessions)
{
    std::vector<grt_session *> raw;
    for (nb::handle session : sessions)
        raw.push_back(nb::cast<const Session &>(session).get());
    if (raw.empty())
        raise_invalid("a pool has at least one session");
    model_ = &nb::cast<const Session &>(sessions[0]).native_model();
    auto options = sized<grt_pool_options>();
    options.contexts = contexts;
    options.queue = queue;
    grt_pool *pool = nullptr;
    check(grt_pool_create(raw.data(), raw.size(), &options, &pool));
    pool_.reset(pool);
}

bool only_tensors(const std::vector<Port> &ports)
{
    return std::all_of(ports.begin(), ports.end(),
                       [](const Port &port) { return port.info.kind == GRT_KIND_TENSOR; });
}

/* The inputs of one request: views of arrays, or, where one of them is a sequence or optional, copies of all.
 */
class Inputs
{
  public:
    Inputs(const Model &model, const std::vector<nb::object> &given);
    /* Without the GIL. */
    grt_status submit(grt_pool *pool, double deadline_ms, int32_t priority, grt_request **request) const
    {
        auto submission = sized<grt_submission>();
        submission.inputs = views_ ? tensors_.data() : nullptr;
        submission.values = views_ ? nullptr : pointers_.data();
        submission.n_inputs = tensors_.size();
        submission.deadline_ms = deadline_ms;
        submission.priority = priority;
        return grt_pool_submit_with(pool, &submission, request);
    }

  private:
    bool views_;
    std::unique_ptr<Operand[]> operands_;
    std::vector<grt_tensor> tensors_;
    std::vector<OwnedValue> values_;
    std::vector<const grt_value *> pointers_;
};

Inputs::Inputs(const Model &model, const std::vector<nb::object> &given)
    : views_(only_tensors(model.inputs)), operands_(new Operand[given.size() + 1]),
      tensors_(given.size(), sized<grt_tensor>()), values_(given.size()), pointers_(given.size())
{
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

nb::object Pool::run(nb::handle inputs, nb::handle timeout, nb::handle stop, int32_t priority, bool watch)
{
    const Limits limits(timeout, stop);
    std::vector<nb::object> ordered;
    feed_order(*model_, inputs, ordered);
    const Inputs given(*model_, ordered);
    grt_request *request = nullptr;
    grt_status status;
    {
        nb::gil_scoped_release released;
        status = given.submit(pool_.get(), limits.deadline_ms, priority, &request);
    }
    check(status);
    OwnedRequest owned(request);
    check(wait_within(request, limits, watch));
    nb::object results = taken(PyDict_New());
    for (size_t i = 0; i < model_->outputs.size(); i++)
        if (PyDict_SetItem(results.ptr(), model_->outputs[i].key.ptr(),
                           output_of(request, model_->outputs[i], i).ptr()) != 0)
            throw nb::python_error();
    return results;
}
} // namespace

void pool_bind(nb::module_ &module)
{
    nb::class_<Pool>(module, "Pool", "The library's pool of contexts; graphrt.Pool is what programs use.")
        .def(nb::init<nb::list, int32_t, int32_t>(), nb::arg("sessions"), nb::arg("contexts"),
             nb::arg("queue"))
        .def(
            "run", &Pool::run, nb::arg("inputs"), nb::arg("timeout").none(), nb::arg("stop").none(),
            nb::arg("priority"), nb::arg("watch"),
            nb::sig("def run(self, inputs: typing.Any, timeout: float | None, stop: Stop | None, priority: "
                    "int, watch: bool) -> dict[str, typing.Any]"),
            "Submit and wait, without the GIL. Any number of threads at once. watch: handlers of signals get "
            "their turn meanwhile.");
}
