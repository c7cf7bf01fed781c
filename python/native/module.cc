/* SPDX-License-Identifier: Apache-2.0 */
/* graphrt._core: libgraphrt for Python. The package around it adds what Python says better. */
#include "compile.h"
#include "listeners.h"
#include "pool.h"
#include "state.h"
#include "stop.h"

NB_MODULE(_core, module)
{
    nb::set_leak_warnings(false); /* nothing is printed, also when a program ends in the middle of things */
    arrays_init();
    nb::list statuses;
#define X(name, text) statuses.append(#name);
    GRT_STATUS_LIST(X)
#undef X
    module.attr("STATUSES") = nb::tuple(statuses);
    module.def("version", grt_version, "Version of the library that is running.");
    arrays_bind(module);
    model_bind(module);
    stop_bind(module);
    nb::class_<State> states = state_bind(module);
    session_bind(module, states);
    pool_bind(module);
    compile_bind(module);
    listeners_bind(module);
}
