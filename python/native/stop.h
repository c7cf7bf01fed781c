/* SPDX-License-Identifier: Apache-2.0 */
/* How a call ends before its time: a graphrt.Stop, a deadline, Ctrl-C. */
#ifndef GRAPHRT_PYTHON_STOP_H
#define GRAPHRT_PYTHON_STOP_H

#include "status.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <set>

/* graphrt.Stop. Once set, it ends the runs and requests that it was given to, and all that it is given to
 * later. */
class Stop
{
  public:
    void set();
    bool is_set() const
    {
        return set_.load(std::memory_order_relaxed);
    }
    /* A request that set() cancels, at once if it is set already; until remove(). */
    void add(grt_request *request);
    void remove(grt_request *request);
    /* The same for a request that submit(&request) makes, whose callback removes it, perhaps before this
     * returns.
     */
    template <typename Submit> grt_status add_made(Submit submit)
    {
        std::lock_guard<std::mutex> lock(mutex_);
        grt_request *request = nullptr;
        const grt_status status = submit(&request);
        if (status != GRT_OK)
            return status;
        requests_.insert(request);
        if (is_set())
            grt_request_cancel(request);
        return status;
    }

  private:
    std::atomic<bool> set_{false};
    std::mutex mutex_;
    std::set<grt_request *> requests_;
};

/* What a call was given: `timeout` is None or seconds from now, `stop` None or a Stop. The caller keeps the
 * Stop alive. */
struct Limits {
    Limits() = default;
    Limits(nb::handle timeout, nb::handle stop);
    double deadline_ms = 0;
    Stop *stop = nullptr;
};

/* Runs a context within its limits, without the GIL. Python's handlers of signals get their turn every few
 * dozen milliseconds, where this is the main thread; what one of them raises ends the run and is thrown. */
grt_status run_within(grt_context *context, const Limits &limits);
/* Waits for a request. With `watch`, which is for the main thread, handlers of signals get their turn as
 * above; what one raises cancels the request, and is thrown when that is done. */
grt_status wait_within(grt_request *request, const Limits &limits, bool watch);

void stop_bind(nb::module_ &module);

#endif
