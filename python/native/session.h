/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt.Session: a model on a device, and as many contexts as run at once. */
#ifndef GRAPHRT_PYTHON_SESSION_H
#define GRAPHRT_PYTHON_SESSION_H

#include "lane.h"
#include "state.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

class Session
{
  public:
    /* A call that needs the session, which cannot go meanwhile. InvalidArgument is raised if it is closed. */
    class Use
    {
      public:
        explicit Use(const Session &session);
        ~Use();
        Use(const Use &) = delete;
        Use &operator=(const Use &) = delete;
        grt_session *get() const
        {
            return session_.session_.get();
        }

      private:
        const Session &session_;
    };
    Session(nb::object model, std::string device, int32_t threads, nb::object fallback, uint64_t memory_limit,
            int32_t priority, int64_t multiprocessors, nb::object compile);
    nb::object run(nb::handle inputs, nb::handle outputs, nb::handle into, nb::handle timeout,
                   nb::handle stop, nb::handle stream, nb::handle state);
    nb::object call(nb::args positional, nb::kwargs named);
    nb::dict load_info() const;
    nb::dict memory() const;
    void set_weights(nb::dict weights);
    void check_device() const;
    /* `sink` is called behind each run with what it did; None: no more. */
    void profile(nb::object sink);
    /* `sink` is called with each tensor that a step of a run makes; None: no more. */
    void watch(nb::object sink);
    nb::dict output_dims(nb::handle inputs);
    /* No call begins any more; those that have begun end; then all that it has goes. */
    void close();
    bool is_closed() const;
    /* Bytes that idle contexts gave back. */
    uint64_t trim();
    nb::dict tune(nb::handle inputs, double seconds, bool again, nb::object progress);
    nb::object model() const
    {
        return model_object_;
    }
    const Model &native_model() const
    {
        return *model_;
    }
    const std::string &device() const
    {
        return device_;
    }
    /* What Python may find circles through. */
    nb::object model_object_;
    nb::object profile_sink();
    nb::object watch_sink();

  private:
    nb::object sink_, watch_;
    std::atomic<bool> profiled_{false}, watched_{false}; /* there is a sink */
    std::unique_ptr<Lane> take(const Use &use, void *stream);
    void give(std::unique_ptr<Lane> lane);
    nb::object run_ordered(const Use &use, const std::vector<nb::object> &inputs, const Wanted &wanted,
                           const Limits &limits);
    void begin_close();
    bool wait_unused() const;

    const Model *model_;
    std::string device_;
    OwnedSession session_;
    mutable std::mutex mutex_; /* of what follows */
    std::vector<std::unique_ptr<Lane>> idle_;
    bool closed_ = false;
    mutable std::vector<std::thread::id> users_; /* the threads of calls that have begun, one for each */
    mutable std::condition_variable unused_;
};

void session_bind(nb::module_ &module, nb::class_<State> &states);

#endif
