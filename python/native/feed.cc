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

/* Not valid if there is none. */
nb::object item_of(nb::handle dict, nb::handle key)
{
#ifdef Py_GIL_DISABLED /* a borrowed one could be gone before it is held */
    PyObject *item = nullptr;
    PyDict_GetItemRef(dict.ptr(), key.ptr(), &item);
    nb::object found = nb::steal(item);
#else
    nb::object found = nb::borrow(PyDict_GetItemWithError(dict.ptr(), key.ptr()));
#endif
    if (!found.is_valid() && PyErr_Occurred())
        throw nb::python_error();
    return found;
}

void order_by_name(const Model &model, nb::handle inputs, std::vector<nb::object> &ordered)
{
    Py_ssize_t found = 0;
    for (size_t i = 0; i < model.inputs.size(); i++) {
        ordered[i] = item_of(inputs, model.inputs[i].key);
        found += ordered[i].is_valid();
    }
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

void feed_order(const Model &model, nb::handle inputs, std::vector<nb::object> &ordered)
{
    ordered.assign(model.inputs.size(), nb::object());
    if (PyDict_Check(inputs.ptr()))
        return order_by_name(model, inputs, ordered);
    if (!PyList_Check(inputs.ptr()) && !PyTuple_Check(inputs.ptr())) {
        if (!ordered.empty())
            ordered[0] = nb::borrow(inputs);
        return;
    }
    const nb::object row =
        PyList_Check(inputs.ptr()) ? taken(PyList_AsTuple(inputs.ptr())) : nb::borrow(inputs);
    const size_t n = (size_t)PyTuple_Size(row.ptr());
    if (n > ordered.size())
        raise_invalid(std::to_string(n) + " inputs are given; the model has " +
                      std::to_string(ordered.size()) + ": " + names_of(model.inputs));
    for (size_t i = 0; i < n; i++)
        ordered[i] = nb::borrow(PyTuple_GetItem(row.ptr(), (Py_ssize_t)i));
}
