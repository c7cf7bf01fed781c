/* SPDX-License-Identifier: Apache-2.0 */
/* A context with what is bound to it for one run. */
#ifndef GRAPHRT_PYTHON_LANE_H
#define GRAPHRT_PYTHON_LANE_H

#include "feed.h"
#include "stop.h"

#include <graphrt/watch.h>

#include <array>
#include <memory>

/* Outputs of one call: which are wanted, and the memory that the user named. */
struct Wanted {
    std::vector<bool> skip;        /* empty: all are wanted */
    std::vector<nb::object> bound; /* the user's objects; empty: none */
    void *stream = nullptr;        /* the run is enqueued there; NULL: it is waited for */
    grt_state *state = nullptr;    /* that the run has; its outputs are not wanted */
};

class Lane
{
  public:
    /* stream: where its runs are enqueued; NULL: they are on the context's own, and waited for. */
    Lane(const Model &model, grt_session *session, void *stream);
    /* Binds, runs without the GIL, and gives a dict of the outputs, of an enqueued run those that were bound.
     * What it held on to is let go of in every case. */
    nb::object run(const std::vector<nb::object> &inputs, const Wanted &wanted, const Limits &limits);
    /* Binds and runs, as tuning wants it. */
    void bind(const std::vector<nb::object> &inputs);
    void forget();
    grt_context *get() const
    {
        return context_.get();
    }
    void *stream() const
    {
        return stream_;
    }
    /* Whether runs are told of from now on; if not, what was told is let go of. */
    void set_profile(bool on);
    /* Called with a dict for each tensor that a step makes, from now on; not valid: nothing is. */
    void set_watch(nb::object sink);
    /* What the last run did: a list of dicts. */
    nb::list profile() const;

  private:
    struct Event {
        grt_profile_event told;
        std::string op, name;
    };
    static void tell(void *lane, const grt_profile_event *event);
    static void show(void *lane, const grt_watched *watched);
    static void *allocate(void *lane, size_t index, const grt_tensor *tensor, size_t bytes);
    void *call_allocator(size_t index, const grt_tensor &tensor, size_t bytes);
    /* Dims of the outputs at the input dims of the last run. */
    struct Output {
        grt_tensor tensor{};
        bool known = false;   /* `tensor` has the dims at hand */
        bool depends = false; /* on data: its dims are not known before a run */
        bool bound = false;
        bool users = false; /* the memory is the user's */
        nb::object array;
        nb::object allocator; /* the user's, which is asked for the array */
    };
    void bind_outputs(const Wanted &wanted);
    void unbind_output(size_t index);
    void bind_user(size_t index, const nb::object &array);
    grt_status enqueue();
    grt_status run_and_wait(const Limits &limits);
    nb::object results(const Wanted &wanted);
    grt_status run_unbound(grt_status status, const Limits &limits);
    nb::object result(size_t index);
    void give_state();

    const Model &model_;
    void *stream_;
    bool has_state_ = false;
    OwnedContext context_;
    std::unique_ptr<Operand[]> operands_, users_;
    std::vector<OwnedValue> values_;
    std::vector<bool> set_;
    std::vector<Output> outputs_;
    std::vector<int64_t> dims_, last_dims_;
    std::vector<Event> events_;
    nb::object watch_;
    std::exception_ptr raised_; /* by an allocator */
    bool profiled_ = false;
};

#endif
