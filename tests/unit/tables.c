/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/tables.h"

#define TAKE(noun)                  \
    do {                            \
        if (t->api.noun) {          \
            t->noun = *t->api.noun; \
            t->api.noun = &t->noun; \
        }                           \
    } while (0)

void device_tables_take(device_tables *t, grt_device *device)
{
    *t = (device_tables){.api = *device->api, .before = device->api};
    TAKE(memory);
    TAKE(copies);
    TAKE(streams);
    TAKE(current);
    TAKE(fences);
    TAKE(graphs);
    TAKE(peers);
    TAKE(pinned);
    TAKE(timer);
    TAKE(locals);
    device->api = &t->api;
}

void device_tables_give_back(device_tables *t, grt_device *device)
{
    device->api = t->before;
}
