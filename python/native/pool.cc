/* SPDX-License-Identifier: Apache-2.0 */
#include "pool.h"

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
    nb::object run(nb::handle inputs);

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

nb::object Pool::run(nb::handle inputs)
{
    std::vector<nb::handle> ordered;
    feed_order(*model_, inputs, ordered);
    std::unique_ptr<Operand[]> operands(new Operand[ordered.size() + 1]);
    std::vector<grt_tensor> tensors(ordered.size(), sized<grt_tensor>());
    for (size_t i = 0; i < ordered.size(); i++)
        if (ordered[i].is_valid() && !ordered[i].is_none()) {
            operands[i].read(ordered[i], model_->inputs[i].info.dtype);
            tensors[i] = operands[i].tensor;
        }
    grt_request *request = nullptr;
    grt_status status;
    {
        nb::gil_scoped_release released;
        status = grt_pool_submit(pool_.get(), tensors.data(), tensors.size(), nullptr, 0, &request);
        if (status == GRT_OK)
            status = grt_request_wait(request);
    }
    OwnedRequest owned(request);
    check(status);
    nb::object results = taken(PyDict_New());
    for (size_t i = 0; i < model_->outputs.size(); i++) {
        grt_tensor tensor;
        check(grt_request_get_output(request, i, &tensor));
        if (PyDict_SetItem(results.ptr(), model_->outputs[i].key.ptr(), array_copy(tensor).ptr()) != 0)
            throw nb::python_error();
    }
    return results;
}
} // namespace

void pool_bind(nb::module_ &module)
{
    nb::class_<Pool>(module, "Pool", "The library's pool of contexts; graphrt.Pool is what programs use.")
        .def(nb::init<nb::list, int32_t, int32_t>(), nb::arg("sessions"), nb::arg("contexts"), nb::arg("queue"))
        .def("run", &Pool::run, nb::arg("inputs"), nb::sig("def run(self, inputs: typing.Any) -> dict[str, typing.Any]"),
             "Submit and wait, without the GIL. Any number of threads at once.");
}
