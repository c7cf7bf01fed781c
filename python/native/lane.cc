/* SPDX-License-Identifier: Apache-2.0 */
#include "lane.h"

#include <utility>

Lane::Lane(const Model &model, grt_session *session, void *stream)
    : model_(model), stream_(stream), operands_(new Operand[model.inputs.size() + 1]),
      users_(new Operand[model.outputs.size() + 1]), values_(model.inputs.size()), set_(model.inputs.size()),
      outputs_(model.outputs.size())
{
    grt_context *context = nullptr;
    check(grt_context_create(session, &context));
    context_.reset(context);
    for (size_t i = 0; i < outputs_.size(); i++) {
        const grt_io_info &info = model.outputs[i].info;
        outputs_[i].depends = info.kind != GRT_KIND_TENSOR || !array_can_be_written(info.dtype);
    }
}

void Lane::set_profile(bool on)
{
    events_.clear();
    if (on == profiled_)
        return;
    auto options = sized<grt_profile_options>();
    options.event = tell;
    options.user = this;
    options.steps = true;
    check(grt_context_set_profile(get(), on ? &options : nullptr));
    profiled_ = on;
}

void Lane::tell(void *lane, const grt_profile_event *event)
{
    ((Lane *)lane)->events_.push_back({*event, event->op, event->name});
}

void Lane::set_watch(nb::object sink)
{
    if (!sink.is_valid() && !watch_.is_valid())
        return;
    check(grt_context_set_watch(get(), sink.is_valid() ? show : nullptr, this));
    watch_ = std::move(sink);
}

/* Within a run, which has not the GIL. */
void Lane::show(void *lane, const grt_watched *watched)
{
    nb::gil_scoped_acquire acquired;
    try {
        nb::dict row;
        row["step"] = watched->step;
        row["op"] = watched->op;
        row["nodes"] = watched->nodes;
        row["tensor"] = watched->tensor;
        row["value"] = array_copy(*watched->value);
        ((Lane *)lane)->watch_(row);
    } catch (nb::python_error &error) {
        error.discard_as_unraisable("a watch of graphrt");
    }
}

void *Lane::call_allocator(size_t index, const grt_tensor &tensor, size_t bytes)
{
    nb::list dims;
    for (int32_t i = 0; i < tensor.rank; i++)
        dims.append(tensor.dims[i]);
    nb::object array = outputs_[index].allocator(grt_dtype_name(tensor.dtype), nb::tuple(dims));
    users_[index].write(array);
    if (grt_tensor_bytes(&users_[index].tensor) != bytes || users_[index].tensor.dtype != tensor.dtype)
        raise_invalid("the allocator of output '" + model_.outputs[index].name +
                      "' gave an array of another dtype or size");
    outputs_[index].array = array;
    return users_[index].tensor.data;
}

void *Lane::allocate(void *lane, size_t index, const grt_tensor *tensor, size_t bytes)
{
    Lane &self = *(Lane *)lane;
    nb::gil_scoped_acquire acquired;
    try {
        return self.call_allocator(index, *tensor, bytes);
    } catch (...) {
        self.raised_ = std::current_exception();
        return nullptr;
    }
}

nb::list Lane::profile() const
{
    static const char *const kinds[] = {"run", "prepare", "compute", "step"};
    nb::list list;
    for (const Event &event : events_) {
        if ((size_t)event.told.kind >= sizeof kinds / sizeof *kinds)
            continue;
        nb::dict row;
        row["kind"] = kinds[event.told.kind];
        row["step"] = event.told.step;
        row["op"] = nb::str(event.op.c_str());
        row["name"] = nb::str(event.name.c_str());
        row["begin_ms"] = event.told.begin_ms;
        row["end_ms"] = event.told.end_ms;
        row["on_device"] = event.told.on_device;
        list.append(row);
    }
    return list;
}

void Lane::forget()
{
    for (size_t i = 0; i < set_.size(); i++) {
        operands_[i].drop();
        values_[i].reset();
    }
    for (size_t i = 0; i < outputs_.size(); i++) {
        outputs_[i].array.reset();
        outputs_[i].allocator.reset();
        if (outputs_[i].users)
            users_[i].drop();
    }
}

void Lane::bind(const std::vector<nb::object> &inputs)
{
    void *waits = stream_ ? stream_ : grt_context_stream(get());
    dims_.clear();
    for (size_t i = 0; i < inputs.size(); i++) {
        const grt_io_info &info = model_.inputs[i].info;
        if (!inputs[i].is_valid() || (inputs[i].is_none() && info.kind != GRT_KIND_OPTIONAL)) {
            if (set_[i])
                check(info.kind == GRT_KIND_TENSOR ? grt_context_set_input(get(), i, nullptr)
                                                   : grt_context_set_input_value(get(), i, nullptr));
            set_[i] = false;
        } else if (info.kind == GRT_KIND_TENSOR) {
            operands_[i].read(inputs[i], info.dtype, waits);
            const grt_tensor &tensor = operands_[i].tensor;
            check(grt_context_set_input(get(), i, &tensor));
            set_[i] = true;
            dims_.push_back(tensor.rank);
            dims_.insert(dims_.end(), tensor.dims, tensor.dims + tensor.rank);
        } else {
            OwnedValue value = value_from_python(inputs[i], model_.inputs[i].type());
            check(grt_context_set_input_value(get(), i, value.get()));
            values_[i] = std::move(value);
            set_[i] = true;
        }
    }
}

void Lane::unbind_output(size_t index)
{
    if (outputs_[index].bound)
        check(grt_context_set_output(get(), index, nullptr));
    outputs_[index].bound = outputs_[index].users = false;
}

void Lane::bind_user(size_t index, const nb::object &array)
{
    if (PyCallable_Check(array.ptr())) {
        if (stream_)
            raise_invalid("a run on a stream is not waited for: its outputs are arrays, not functions");
        check(grt_context_set_output_allocator(get(), index, allocate, this, GRT_MEMORY_HOST));
        outputs_[index].allocator = array;
        outputs_[index].bound = outputs_[index].users = true;
        return;
    }
    users_[index].write(array, stream_ ? stream_ : grt_context_stream(get()));
    check(grt_context_set_output(get(), index, &users_[index].tensor));
    outputs_[index].array = array;
    outputs_[index].bound = outputs_[index].users = true;
}

/* Outputs whose dims are known from the last run get an array's memory to be written into: nothing is copied
 * behind the run. */
void Lane::bind_outputs(const Wanted &wanted)
{
    const bool same = dims_ == last_dims_;
    for (size_t i = 0; i < outputs_.size(); i++) {
        Output &output = outputs_[i];
        output.users = false;
        if (!wanted.bound.empty() && wanted.bound[i].is_valid()) {
            bind_user(i, wanted.bound[i]);
        } else if (!stream_ && same && output.known && !output.depends &&
                   (wanted.skip.empty() || !wanted.skip[i])) {
            output.array =
                array_make(output.tensor.dtype, output.tensor.rank, output.tensor.dims, &output.tensor.data);
            check(grt_context_set_output(get(), i, &output.tensor));
            output.bound = true;
        } else {
            unbind_output(i);
        }
    }
}

/* Dims that were taken from the last run may have depended on data. If the run goes well without them, they
 * do. */
grt_status Lane::run_unbound(grt_status status, const Limits &limits)
{
    std::vector<size_t> guessed;
    for (size_t i = 0; i < outputs_.size(); i++)
        if (outputs_[i].bound && !outputs_[i].users)
            guessed.push_back(i);
    if (guessed.empty())
        return status;
    for (size_t i : guessed)
        unbind_output(i);
    status = run_within(get(), limits);
    for (size_t i : guessed)
        outputs_[i].depends = outputs_[i].depends || status == GRT_OK;
    return status;
}

/* Output `index` of the run; its dims are kept for the next one. */
nb::object Lane::result(size_t index)
{
    Output &output = outputs_[index];
    if (output.users && output.array.is_valid())
        return std::move(output.array);
    if (output.users) { /* of no elements: its allocator was not asked */
        check(grt_context_get_output(get(), index, &output.tensor));
        return array_copy(output.tensor);
    }
    if (output.bound)
        return array_finish(std::move(output.array), output.tensor.dtype);
    if (model_.outputs[index].info.kind != GRT_KIND_TENSOR) {
        grt_value *value = nullptr;
        check(grt_context_get_output_value(get(), index, &value));
        OwnedValue owned(value);
        return value_to_python(value);
    }
    check(grt_context_get_output(get(), index, &output.tensor));
    output.known = true;
    return array_copy(output.tensor);
}

grt_status Lane::run_and_wait(const Limits &limits)
{
    grt_status status = run_within(get(), limits);
    if (status == GRT_STATUS_INVALID_ARGUMENT)
        status = run_unbound(status, limits);
    if (status == GRT_OK && dims_ != last_dims_) {
        for (Output &output : outputs_)
            output.known = false;
        last_dims_ = dims_;
    }
    return status;
}

grt_status Lane::enqueue()
{
    nb::gil_scoped_release released;
    return grt_context_run_async(get(), stream_);
}

nb::object Lane::results(const Wanted &wanted)
{
    nb::object results = taken(PyDict_New());
    for (size_t i = 0; i < outputs_.size(); i++) {
        const bool skipped = stream_ ? !outputs_[i].users : !wanted.skip.empty() && wanted.skip[i];
        if (!skipped && PyDict_SetItem(results.ptr(), model_.outputs[i].key.ptr(), result(i).ptr()) != 0)
            throw nb::python_error();
    }
    return results;
}

void Lane::give_state()
{
    if (has_state_)
        (void)!grt_context_set_state(get(), nullptr);
    has_state_ = false;
}

nb::object Lane::run(const std::vector<nb::object> &inputs, const Wanted &wanted, const Limits &limits)
{
    struct Forget {
        Lane *lane;
        ~Forget()
        {
            lane->give_state();
            lane->forget();
        }
    } forget{this};
    bind(inputs);
    bind_outputs(wanted);
    if (wanted.state)
        check(grt_context_set_state(get(), wanted.state));
    has_state_ = wanted.state != nullptr;
    raised_ = nullptr;
    const grt_status status = stream_ ? enqueue() : run_and_wait(limits);
    if (raised_)
        std::rethrow_exception(std::exchange(raised_, nullptr));
    check(status);
    return results(wanted);
}
