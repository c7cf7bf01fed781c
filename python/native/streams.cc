/* SPDX-License-Identifier: Apache-2.0 */
#include "streams.h"

namespace
{
enum { DLPACK_CUDA = 2, DLPACK_CUDA_MANAGED = 13 };
constexpr uintptr_t legacy_stream = 1; /* cudaStreamLegacy, and DLPack's number for it */

nb::object handle_of(nb::handle object)
{
    if (PyLong_Check(object.ptr()))
        return nb::borrow(object);
    if (nb::hasattr(object, "__cuda_stream__"))
        return nb::object(object.attr("__cuda_stream__")()[nb::int_(1)]);
    for (const char *name : {"cuda_stream", "ptr"})
        if (nb::hasattr(object, name))
            return object.attr(name);
    throw nb::type_error("a stream is an int or has __cuda_stream__, cuda_stream (torch) or ptr (CuPy)");
}

bool on_gpu(nb::handle object)
{
    if (!nb::hasattr(object, "__dlpack_device__"))
        return false;
    const int kind = nb::cast<int>(object.attr("__dlpack_device__")()[nb::int_(0)]);
    return kind == DLPACK_CUDA || kind == DLPACK_CUDA_MANAGED;
}
} // namespace

void *stream_of(nb::handle object)
{
    if (object.is_none())
        return nullptr;
    const size_t number = PyLong_AsSize_t(handle_of(object).ptr());
    if (PyErr_Occurred())
        throw nb::python_error();
    return (void *)(number ? number : legacy_stream);
}

nb::object with_stream(nb::handle object, void *stream)
{
    if (!stream || !on_gpu(object))
        return nb::borrow(object);
    const nb::int_ number((uintptr_t)stream);
    try {
        return object.attr("__dlpack__")(nb::arg("stream") = number,
                                         nb::arg("max_version") = nb::make_tuple(1, 0));
    } catch (const nb::python_error &error) {
        if (!error.matches(PyExc_TypeError)) /* producers older than DLPack 1.0 */
            throw;
    }
    return object.attr("__dlpack__")(nb::arg("stream") = number);
}
