/* SPDX-License-Identifier: Apache-2.0 */
/* Between Python's objects and the library's tensors and values. */
#ifndef GRAPHRT_PYTHON_ARRAYS_H
#define GRAPHRT_PYTHON_ARRAYS_H

#include "status.h"

#include <nanobind/ndarray.h>

#include <optional>
#include <vector>

/* Looks NumPy up, and ml_dtypes where it is installed. Called once, when the module is imported. */
void arrays_init();
void arrays_bind(nb::module_ &module);

/* graphrt._core.Pointer: memory that is known by its address alone, as onnxruntime's IO binding has it.
 * Nothing keeps it alive. */
struct Pointer {
    grt_tensor tensor;
};

/* A view of a Python object's memory, and what keeps that memory in place: a buffer, a DLPack capsule, or an
 * object made from the one given. The caller holds the GIL when one is destroyed. */
class Operand
{
  public:
    Operand() = default;
    Operand(const Operand &) = delete;
    Operand &operator=(const Operand &) = delete;
    ~Operand()
    {
        drop();
    }
    /* An input: memory is used where it is, if it is dense, aligned and in the machine's byte order;
     * otherwise a copy is. Objects without a dtype of their own (lists, numbers) become `wanted`. `stream`
     * waits for those who make what is in a GPU's memory; NULL: they are done. */
    void read(nb::handle object, grt_dtype wanted, void *stream = nullptr);
    /* An output: memory that can be written where it is, else an error. */
    void write(nb::handle object, void *stream = nullptr);
    void drop();

    grt_tensor tensor{};

  private:
    bool take_buffer(nb::handle object, int flags);
    bool take_pointer(nb::handle object);
    bool take_dlpack(nb::handle object, bool writable, void *stream);
    void take_prepared(nb::handle object, grt_dtype wanted);

    Py_buffer buffer_{};
    bool has_buffer_ = false;
    std::optional<nb::ndarray<nb::ro>> dlpack_;
    nb::object owner_;
    std::vector<grt_string> strings_;
};

/* True for elements that NumPy can hold where the library writes them: no strings, none that are packed. */
bool array_can_be_written(grt_dtype dtype);
/* Memory for a tensor as a NumPy array of the dtype's storage; `data` is its first byte. */
nb::object array_make(grt_dtype dtype, int32_t rank, const int64_t *dims, void **data);
/* The same array as its user sees it: of ml_dtypes' dtype where NumPy has none. */
nb::object array_finish(nb::object array, grt_dtype dtype);
/* A copy of a tensor in host memory. */
nb::object array_copy(const grt_tensor &tensor);

/* None, a list, a dict, or an array, copied out of a value. */
nb::object value_to_python(const grt_value *value);
/* What values an input takes: as in grt_io_info; `keys` are those of maps. */
struct ValueType {
    grt_kind kind, element_kind;
    grt_dtype dtype, keys;
};
/* A sequence out of an iterable, an optional out of None or what it holds, a map out of a dict. */
OwnedValue value_from_python(nb::handle object, const ValueType &type);

#endif
