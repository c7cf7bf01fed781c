/* SPDX-License-Identifier: Apache-2.0 */
/* What every part of the binding needs: Python's errors for statuses, structs with their sizes set, objects
 * with owners. */
#ifndef GRAPHRT_PYTHON_STATUS_H
#define GRAPHRT_PYTHON_STATUS_H

#include <graphrt/graphrt.h>
#include <nanobind/nanobind.h>

#include <memory>
#include <string>

namespace nb = nanobind;

/* Throws the exception of graphrt._errors that belongs to the status. */
[[noreturn]] void raise_status(grt_status status, const std::string &message);

inline void check(grt_status status)
{
    if (status != GRT_OK)
        raise_status(status, grt_last_error());
}

[[noreturn]] inline void raise_invalid(const std::string &message)
{
    raise_status(GRT_STATUS_INVALID_ARGUMENT, message);
}

/* The result of a call of Python's C API that returns a new reference or NULL. */
inline nb::object taken(PyObject *object)
{
    if (!object)
        throw nb::python_error();
    return nb::steal(object);
}

/* A path as the system has it. Raises TypeError for what is none; a model's bytes are none. */
std::string path_of(nb::handle path);

/* A zeroed struct of the public header. Those with struct_size have it set, whichever these are in the header
 * at hand. */
template <typename Struct> Struct sized()
{
    Struct made{};
    if constexpr (requires { made.struct_size; })
        made.struct_size = sizeof made;
    return made;
}

template <auto release> struct Releaser {
    template <typename Object> void operator()(Object *object) const
    {
        release(object);
    }
};
template <typename Object, auto release> using Owned = std::unique_ptr<Object, Releaser<release>>;
using OwnedModel = Owned<grt_model, grt_model_release>;
using OwnedSession = Owned<grt_session, grt_session_release>;
using OwnedContext = Owned<grt_context, grt_context_release>;
using OwnedValue = Owned<grt_value, grt_value_release>;
using OwnedRequest = Owned<grt_request, grt_request_release>;
using OwnedPool = Owned<grt_pool, grt_pool_release>;

#endif
