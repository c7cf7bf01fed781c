/* SPDX-License-Identifier: Apache-2.0 */
/* oneDNN as part of the program: see dnnl_library.h. */
#include "backends/cpu/dnnl_library.h"

grt_status dnnl_library_find(const dnnl_calls **out)
{
    *out = &grt_dnnl_calls;
    return GRT_OK;
}
