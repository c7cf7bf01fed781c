/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt._core: libgraphrt for Python. The package around it adds what Python says better. */
#include "session.h"

void raise_status(grt_status status, const std::string &message)
{
    static const char *const names[] = {
#define X(name, text) #name,
        GRT_STATUS_LIST(X)
#undef X
    };
    const char *name = (size_t)status < sizeof names / sizeof *names ? names[status] : "INTERNAL";
    nb::object error = nb::module_::import_("graphrt._errors").attr("of_status")(name, message.c_str());
    PyErr_SetObject((PyObject *)Py_TYPE(error.ptr()), error.ptr());
    throw nb::python_error();
}

NB_MODULE(_core, module)
{
    arrays_init();
    nb::list statuses;
#define X(name, text) statuses.append(#name);
    GRT_STATUS_LIST(X)
#undef X
    module.attr("STATUSES") = nb::tuple(statuses);
    module.def("version", grt_version, "Version of the library that is running.");
    model_bind(module);
    session_bind(module);
}
