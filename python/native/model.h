/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt.Model: what a file or bytes are, and its inputs and outputs. */
#ifndef GRAPHRT_PYTHON_MODEL_H
#define GRAPHRT_PYTHON_MODEL_H

#include "arrays.h"
#include "options.h"

#include <vector>

/* An input or output of a model. */
struct Port {
    std::string name;
    nb::object key; /* the name as Python has it */
    grt_io_info info;
    grt_dtype keys;       /* of maps */
    nb::object described; /* graphrt.ValueInfo */
    ValueType type() const
    {
        return {info.kind, info.element_kind, info.dtype, keys};
    }
};

class Model
{
  public:
    /* `source`: a path, or bytes. `kind`: what sessions are for. */
    Model(nb::handle source, const std::string &target, nb::kwargs options);
    nb::list described(const std::vector<Port> &ports) const;
    /* "x: float32[Nx4] -> y: float32[Nx3]". */
    std::string signature() const;
    nb::dict info() const;
    nb::dict metadata() const;
    nb::list steps() const;
    nb::list phases() const;
    nb::dict predict_memory(const std::string &device, int32_t threads, int32_t contexts, nb::object fallback,
                            nb::object shapes) const;
    grt_model *get() const
    {
        return model_.get();
    }
    std::vector<Port> inputs, outputs;

  private:
    std::vector<Bytes> external_data_; /* the model's weights may lie there */
    OwnedModel model_;
};

nb::dict memory_dict(const grt_memory_info &info);
/* The process's runtime, made on first use. */
grt_runtime *runtime();
/* Before the process ends. */
void stop_compiling();
/* "cuda" of "cuda:0". */
std::string device_kind(const std::string &device);
void model_bind(nb::module_ &module);
/* A list of {"name", "begin_ms", "end_ms"}. */
nb::list phases_list(const grt_phase *phases, size_t n);

#endif
