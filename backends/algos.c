/* SPDX-License-Identifier: Apache-2.0 */
/* Looks up and records algorithms for kernels. */
#include "backends/algos.h"
#include "backends/device.h"

#include <stdlib.h>
#include <string.h>

void grt_device_algo_key(grt_device *device, const char *op, grt_text *key)
{
    grt_text_add(key, "op=%s;", op);
    grt_device_identify(device, key);
}

static bool tries(const grt_algo_trial *trial, const char *key)
{
    return trial && trial->key && !strcmp(trial->key, key);
}

static void tell_use(grt_algo_trial *trial, const char *key)
{
    if (trial && trial->uses)
        trial->uses(trial, key);
}

static void *algos_copy_of(const void *data, size_t size)
{
    char *copy = malloc(size + 1);
    if (copy) {
        memcpy(copy, data, size);
        copy[size] = '\0';
    }
    return copy;
}

bool grt_algo_trial_offer(grt_algo_trial *trial, const char *key, const void *data, size_t size)
{
    return trial->offer(trial, key, data, size);
}

void *grt_device_algo_find(grt_device *device, grt_algo_trial *trial, const char *key, size_t *out_size)
{
    void *data = NULL;
    *out_size = 0;
    if (grt_algo_trial_lists(trial))
        return NULL;
    if (tries(trial, key)) {
        data = trial->refused ? NULL : algos_copy_of(trial->data, trial->size);
        *out_size = data ? trial->size : 0;
    } else if (device && device->algos)
        data = device->algos->find(device->algos, key, out_size);
    if (data)
        tell_use(trial, key);
    return data;
}

void grt_device_algo_store(grt_device *device, grt_algo_trial *trial, const char *key, const void *data,
                           size_t size)
{
    tell_use(trial, key);
    if (device && device->algos && !grt_algo_trial_lists(trial) && !tries(trial, key))
        device->algos->store(device->algos, key, data, size, GRT_CHOICE_HEURISTIC, 0);
}

void grt_device_algo_store_tuned(grt_device *device, const char *key, const void *data, size_t size,
                                 double cost_ms)
{
    if (device && device->algos)
        device->algos->store(device->algos, key, data, size, GRT_CHOICE_TUNED, cost_ms);
}

void grt_device_algo_reject(grt_device *device, grt_algo_trial *trial, const char *key)
{
    if (tries(trial, key))
        trial->refused = true;
    else if (device && device->algos)
        device->algos->reject(device->algos, key);
}

const char *grt_code_origin_name(grt_code_origin origin)
{
    static const char *const names[GRT_CODE_ORIGINS] = {"",         "plan",    "store",
                                                        "compiled", "waiting", "interpreted"};
    return names[origin];
}

void *grt_device_code_find(grt_device *device, const char *key, size_t *out_size)
{
    *out_size = 0;
    return device && device->algos && device->algos->code ? device->algos->code(device->algos, key, out_size)
                                                          : NULL;
}

void *grt_device_code_read(grt_device *device, const char *key, char **out_key, size_t *out_size)
{
    *out_key = NULL;
    *out_size = 0;
    return device->algos && device->algos->read_code
               ? device->algos->read_code(device->algos, key, out_key, out_size)
               : NULL;
}

void grt_device_code_write(grt_device *device, const char *key, const void *data, size_t size, double ms)
{
    if (device->algos && device->algos->write_code)
        device->algos->write_code(device->algos, key, data, size, ms);
}

void grt_device_code_drop(grt_device *device, const char *key)
{
    if (device->algos && device->algos->drop_code)
        device->algos->drop_code(device->algos, key);
}

void grt_device_code_note(grt_device *device, const char *key, grt_code_origin before, grt_code_origin now)
{
    if (device->algos && device->algos->note_code)
        device->algos->note_code(device->algos, key, before, now);
}
