/* --device for several devices: "cuda:all", "cuda:0,2", "null:0-7", "mirror:3". */
#ifndef TOOLS_DEVICES_H
#define TOOLS_DEVICES_H

#include <stdbool.h>
#include <stddef.h>

typedef struct device_list {
    char **names; /* "cuda:0", "cuda:2" */
    size_t n;
} device_list;

/* NULL: "cpu". False after printing what is wrong; a device may be named once. */
bool devices_parse(const char *text, device_list *out);
void devices_release(device_list *list);

#endif
