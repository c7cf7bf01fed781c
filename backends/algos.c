/* Kernels' way to the choices that were made before. */
#include "backends/algos.h"
#include "backends/backend.h"

void grt_device_algo_key(grt_device *device, const char *op, grt_text *key)
{
    grt_text_add(key, "op=%s;", op);
    if (device && device->vtable->identify)
        device->vtable->identify(device, key);
}

void *grt_device_algo_find(grt_device *device, const char *key, size_t *out_size)
{
    *out_size = 0;
    return device && device->algos ? device->algos->find(device->algos, key, out_size) : NULL;
}

void grt_device_algo_store(grt_device *device, const char *key, const void *data, size_t size,
                           grt_algo_source source, double cost_ms)
{
    if (device && device->algos)
        device->algos->store(device->algos, key, data, size, source, cost_ms);
}

void grt_device_algo_reject(grt_device *device, const char *key)
{
    if (device && device->algos)
        device->algos->reject(device->algos, key);
}
