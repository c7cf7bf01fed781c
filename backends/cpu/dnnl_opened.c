/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN as a module: see dnnl_library.h. */
#include "backends/cpu/dnnl_library.h"

#include "backends/module.h"

#include <string.h>

grt_status dnnl_library_find(const dnnl_calls **out)
{
    const void *module;
    const grt_status status = grt_module_find("onednn", "grt_dnnl_calls", NULL, &module);
    if (status != GRT_OK)
        return grt_fail_context(status, "convolutions are computed by oneDNN");
    const dnnl_calls *found = module;
    if (strcmp(found->build, DNNL_CALLS_BUILD) != 0)
        return grt_fail(GRT_STATUS_DEVICE,
                        "convolutions are computed by oneDNN: the module 'onednn' is of %s, this library "
                        "of %s; install both of one release",
                        found->build, DNNL_CALLS_BUILD);
    *out = found;
    return GRT_OK;
}
