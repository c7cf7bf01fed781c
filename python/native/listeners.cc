/* SPDX-License-Identifier: Apache-2.0 */
#include "listeners.h"

#include "model.h"

#include <nanobind/stl/string.h>

namespace
{
/* Called by any thread, which has no GIL or has it. What one raises is not anybody's to catch: it is told as
 * Python tells such things. */
template <typename Call> void tell_python(Call call)
{
    nb::gil_scoped_acquire acquired;
    try {
        call();
    } catch (nb::python_error &error) {
        error.discard_as_unraisable("a listener of graphrt");
    }
}

void tell_message(void *user, const grt_log_message *message)
{
    static const char *const levels[] = {"off", "error", "warning", "info", "debug"};
    tell_python(
        [&] { nb::handle((PyObject *)user)(levels[message->level], message->category, message->text); });
}

void tell_span(void *user, const grt_span *span)
{
    static const char *const kinds[] = {"request", "queue",  "copy in", "run",      "prepare", "upload",
                                        "step",    "replay", "capture", "download", "wait",    "copy out"};
    tell_python([&] {
        nb::dict told;
        told["kind"] = kinds[span->kind];
        told["op"] = span->op;
        told["name"] = span->name;
        told["device"] = span->device;
        told["step"] = span->step;
        told["lane"] = span->lane;
        told["request"] = span->request;
        told["begin_ms"] = span->begin_ms;
        told["end_ms"] = span->end_ms;
        nb::handle((PyObject *)user)(told);
    });
}

PyObject *message_listener, *span_listener;

/* When `set` has returned, nobody is in the earlier function. It may wait for one that wants the GIL. */
template <typename Set> void replace(PyObject *&place, nb::handle function, Set set)
{
    PyObject *next = function.is_none() ? nullptr : function.inc_ref().ptr();
    {
        nb::gil_scoped_release released;
        set(next);
    }
    Py_XDECREF(place);
    place = next;
}

grt_log_level level_of(const std::string &name)
{
    const char *const names[] = {"off", "error", "warning", "info", "debug"};
    for (int i = 0; i <= GRT_LOG_DEBUG; i++)
        if (name == names[i])
            return (grt_log_level)i;
    raise_invalid("level is '" + name + "', must be off, error, warning, info or debug");
}

void set_log(const std::string &level, nb::handle function)
{
    const grt_log_level found = level_of(level);
    replace(message_listener, function, [&](PyObject *next) {
        grt_log_set(next ? found : GRT_LOG_OFF, next ? tell_message : nullptr, next);
    });
}

void set_trace(nb::handle function)
{
    replace(span_listener, function, [](PyObject *next) { grt_trace_set(next ? tell_span : nullptr, next); });
}
} // namespace

void listeners_bind(nb::module_ &module)
{
    module.def(
        "set_log", set_log, nb::arg("level"), nb::arg("function").none(),
        nb::sig("def set_log(level: str, function: collections.abc.Callable[[str, str, str], None] | None) "
                "-> None"),
        "Send messages of the library to function(level, category, text): those of `level` (\"error\", "
        "\"warning\", \"info\", \"debug\") and the more\n"
        "important ones, of all of the process; None: to nobody. It is called by any thread and must not "
        "call the library.");
    module.def(
        "set_trace", set_trace, nb::arg("function").none(),
        nb::sig("def set_trace(function: collections.abc.Callable[[dict[str, typing.Any]], None] | None) -> "
                "None"),
        "Tell function(span) what runs and pools of the process do, each span when it is over, on the "
        "thread that was in it: a dict of kind\n"
        "(\"request\", \"queue\", \"copy in\", \"run\", \"prepare\", \"upload\", \"step\", \"replay\", "
        "\"capture\", \"download\", \"wait\", \"copy out\"), op and name\n"
        "(of a step's nodes), device, step, lane, request, begin_ms and end_ms. None: no more. It must not "
        "call the library. Each takes the\n"
        "GIL: a program that is to be fast meanwhile writes the trace in C, or uses graphrun --trace.");
    nb::module_::import_("atexit").attr("register")(nb::cpp_function([] {
        set_log("off", nb::none());
        set_trace(nb::none());
        stop_compiling();
    }));
}
