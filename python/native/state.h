/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt.State: outputs of a run that are inputs of the next. */
#ifndef GRAPHRT_PYTHON_STATE_H
#define GRAPHRT_PYTHON_STATE_H

#include "feed.h"

#include <mutex>

using OwnedState = Owned<grt_state, grt_state_release>;

class State
{
  public:
    /* `pairs`: a dict from outputs to inputs, or None for those that the model declares. */
    State(nb::object session, const Model &model, grt_session *on, nb::handle pairs, nb::handle initial,
          bool in_place);
    void reset();
    nb::dict save();
    void restore(nb::dict content);
    void copy_from(State &other);
    grt_state *get() const
    {
        return state_.get();
    }
    const std::vector<size_t> &inputs() const
    {
        return inputs_;
    }
    const std::vector<size_t> &outputs() const
    {
        return outputs_;
    }
    /* One run or call at a time: false if another thread is in one. */
    std::mutex &mutex()
    {
        return mutex_;
    }
    /* What Python may find circles through. */
    nb::object session_object_;

  private:
    OwnedState state_;
    std::vector<size_t> inputs_, outputs_; /* of the model, which are neither given nor returned */
    std::mutex mutex_;
};

/* Without a constructor, which is the session's to define. */
nb::class_<State> state_bind(nb::module_ &module);

#endif
