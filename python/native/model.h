/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt.Model: what a file or bytes are, and its inputs and outputs. */
#ifndef GRAPHRT_PYTHON_MODEL_H
#define GRAPHRT_PYTHON_MODEL_H

#include "status.h"

#include <vector>

/* An input or output of a model. */
struct Port {
    std::string name;
    nb::object key; /* the name as Python has it */
    grt_io_info info;
    nb::object described; /* graphrt.ValueInfo */
};

class Model
{
  public:
    /* `source`: a path, or bytes. `kind`: what sessions are for. */
    Model(nb::handle source, const std::string &target, nb::kwargs options);
    nb::list described(const std::vector<Port> &ports) const;
    nb::dict info() const;
    nb::list steps() const;
    nb::list phases() const;
    grt_model *get() const
    {
        return model_.get();
    }
    std::vector<Port> inputs, outputs;

  private:
    OwnedModel model_;
};

/* The process's runtime, made on first use. */
grt_runtime *runtime();
/* "cuda" of "cuda:0". */
std::string device_kind(const std::string &device);
void model_bind(nb::module_ &module);
/* A list of {"name", "begin_ms", "end_ms"}. */
nb::list phases_list(const grt_phase *phases, size_t n);

#endif
