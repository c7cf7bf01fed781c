/* SPDX-License-Identifier: Apache-2.0 */
/* --device for several devices: "cuda:all", "cuda:0,2", "null:0-7", "mirror:3". */
#ifndef TOOLS_DEVICES_H
#define TOOLS_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct device_list {
    char **names; /* "cuda:0", "cuda:2" */
    size_t n;
} device_list;

/* NULL: "cpu". False after printing an error; a device may be named once. */
bool devices_parse(const char *text, device_list *out);
/* The kind of what may be written so, "cuda": false after printing that it may not. Asks for no device. */
enum { DEVICE_KIND_SIZE = 64 };
bool devices_kind(const char *text, char out[DEVICE_KIND_SIZE]);
/* True if there is this one device, "cuda" or "cuda:1" (NULL: "cpu"). May start the kind's driver. */
bool devices_has(const char *text);
/* The first kind of accelerators that is not for tests, "cuda": what commands about GPUs mean by default. */
const char *devices_accelerator(void);
void devices_release(device_list *list);

#endif
