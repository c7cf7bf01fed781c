/* SPDX-License-Identifier: Apache-2.0 */
#include "status.h"

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

std::string path_of(nb::handle path)
{
    if (!PyUnicode_Check(path.ptr()) && !nb::hasattr(path, "__fspath__"))
        throw nb::type_error("a path is a str or an os.PathLike");
    return nb::cast<nb::bytes>(nb::module_::import_("os").attr("fsencode")(path)).c_str();
}
