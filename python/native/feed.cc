/* SPDX-License-Identifier: Apache-2.0 */
#include "feed.h"

#include <nanobind/stl/string.h>

namespace
{
std::string names_of(const std::vector<Port> &ports)
{
    std::string names;
    for (const Port &port : ports)
        names += (names.empty() ? "'" : ", '") + port.name + "'";
    return names.empty() ? "none" : names;
}

void order_by_name(const Model &model, nb::handle inputs, std::vector<nb::handle> &ordered)
{
    Py_ssize_t found = 0;
    for (size_t i = 0; i < model.inputs.size(); i++) {
        ordered[i] = PyDict_GetItemWithError(inputs.ptr(), model.inputs[i].key.ptr());
        found += ordered[i].is_valid();
    }
    if (PyErr_Occurred())
        throw nb::python_error();
    if (found != PyDict_Size(inputs.ptr()))
        for (auto [name, value] : nb::cast<nb::dict>(inputs))
            port_index(model.inputs, name, "input");
}
} // namespace

size_t port_index(const std::vector<Port> &ports, nb::handle name, const char *what)
{
    for (size_t i = 0; i < ports.size(); i++)
        if (ports[i].key.is(name) || PyUnicode_Compare(ports[i].key.ptr(), name.ptr()) == 0)
            return i;
    if (PyErr_Occurred())
        PyErr_Clear();
    raise_invalid(std::string("there is no ") + what + " " + nb::cast<std::string>(nb::repr(name)) +
                  "; the model has " + names_of(ports));
}

void feed_order(const Model &model, nb::handle inputs, std::vector<nb::handle> &ordered)
{
    ordered.assign(model.inputs.size(), nb::handle());
    if (PyDict_Check(inputs.ptr()))
        return order_by_name(model, inputs, ordered);
    if (!PyList_Check(inputs.ptr()) && !PyTuple_Check(inputs.ptr())) {
        if (!ordered.empty())
            ordered[0] = inputs;
        return;
    }
    const bool list = PyList_Check(inputs.ptr());
    const size_t n = (size_t)PyObject_Length(inputs.ptr());
    if (n > ordered.size())
        raise_invalid(std::to_string(n) + " inputs are given; the model has " +
                      std::to_string(ordered.size()) + ": " + names_of(model.inputs));
    for (size_t i = 0; i < n; i++)
        ordered[i] =
            list ? PyList_GetItem(inputs.ptr(), (Py_ssize_t)i) : PyTuple_GetItem(inputs.ptr(), (Py_ssize_t)i);
}
