/* SPDX-License-Identifier: Apache-2.0 */
#include "stop.h"

#include <algorithm>
#include <time.h>

namespace
{
constexpr int64_t look_ms = 30; /* between looks at signals */

/* Reading this clock costs a fifth of reading the exact one. */
int64_t coarse_ms()
{
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* True if a handler of a signal raised. Takes the GIL; does nothing on other threads than the main one. */
bool signal_raises(std::exception_ptr &raised)
{
    nb::gil_scoped_acquire acquired;
    if (PyErr_CheckSignals() == 0)
        return false;
    raised = std::make_exception_ptr(nb::python_error());
    return true;
}

struct Poll {
    const Stop *stop;
    int64_t next_look;
    std::exception_ptr raised;
    static bool asked(void *user)
    {
        auto *self = (Poll *)user;
        if (self->stop && self->stop->is_set())
            return true;
        const int64_t now = coarse_ms();
        if (now < self->next_look)
            return false;
        self->next_look = now + look_ms;
        return signal_raises(self->raised);
    }
};

/* A request among those of a Stop, for as long as this exists. */
class Entry
{
  public:
    Entry(Stop *stop, grt_request *request) : stop_(stop), request_(request)
    {
        if (stop_)
            stop_->add(request_);
    }
    ~Entry()
    {
        if (stop_)
            stop_->remove(request_);
    }
    Entry(const Entry &) = delete;
    Entry &operator=(const Entry &) = delete;

  private:
    Stop *stop_;
    grt_request *request_;
};
} // namespace

void Stop::set()
{
    std::lock_guard<std::mutex> lock(mutex_);
    set_.store(true, std::memory_order_relaxed);
    for (grt_request *request : requests_)
        grt_request_cancel(request);
}

void Stop::add(grt_request *request)
{
    std::lock_guard<std::mutex> lock(mutex_);
    requests_.insert(request);
    if (is_set())
        grt_request_cancel(request);
}

void Stop::remove(grt_request *request)
{
    std::lock_guard<std::mutex> lock(mutex_);
    requests_.erase(request);
}

Limits::Limits(nb::handle timeout, nb::handle given_stop)
{
    if (!timeout.is_none()) {
        const double seconds = nb::cast<double>(timeout);
        if (!(seconds >= 0))
            raise_invalid("a timeout is a number of seconds, 0 or more, or None");
        deadline_ms = grt_clock_ms() + 1e3 * seconds;
    }
    if (!given_stop.is_none())
        stop = nb::cast<Stop *>(given_stop);
}

grt_status run_within(grt_context *context, const Limits &limits)
{
    Poll poll{limits.stop, coarse_ms() + look_ms, {}};
    auto options = sized<grt_run_options>();
    options.deadline_ms = limits.deadline_ms;
    options.cancel = Poll::asked;
    options.user = &poll;
    grt_status status;
    {
        nb::gil_scoped_release released;
        status = grt_context_run_with(context, &options);
    }
    if (poll.raised)
        std::rethrow_exception(poll.raised);
    return status;
}

grt_status wait_within(grt_request *request, const Limits &limits, bool watch)
{
    std::exception_ptr raised;
    grt_status status;
    {
        nb::gil_scoped_release released;
        Entry entry(limits.stop, request);
        if (watch)
            while (!raised &&
                   grt_request_wait_until(request, grt_clock_ms() + (double)look_ms) == GRT_STATUS_BUSY)
                if (signal_raises(raised))
                    grt_request_cancel(request);
        status = grt_request_wait(request);
    }
    if (raised)
        std::rethrow_exception(raised);
    return status;
}

void stop_bind(nb::module_ &module)
{
    nb::class_<Stop>(module, "Stop",
                     "Ends runs and requests early, from any thread. Give one to `stop` of Session.run or "
                     "Pool.submit; to as many\n"
                     "as should end together.")
        .def(nb::init<>())
        .def("set", &Stop::set, nb::call_guard<nb::gil_scoped_release>(),
             "End what was given this: runs in progress raise Cancelled before their next step, waiting "
             "requests at once, and those\n"
             "that begin later do not begin. It stays set. Does not wait.")
        .def("is_set", &Stop::is_set, "True after set().");
}
