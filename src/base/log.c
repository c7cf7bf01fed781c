/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

atomic_int grt_log_wanted;

/* Written by grt_log_set, read by whoever tells something. */
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static void (*listener)(void *user, const grt_log_message *message);
static void *listener_user;

void grt_log_set(grt_log_level level, void (*message)(void *user, const grt_log_message *message), void *user)
{
    pthread_rwlock_wrlock(&lock);
    listener = message;
    listener_user = user;
    atomic_store_explicit(&grt_log_wanted, message ? (int)level : GRT_LOG_OFF, memory_order_relaxed);
    pthread_rwlock_unlock(&lock);
}

void grt_log_write(grt_log_level level, const char *category, const char *format, ...)
{
    char text[2048], printable[4096];
    va_list args;
    va_start(args, format);
    const int size = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (size < 0)
        return;
    grt_printable(text, (size_t)size < sizeof text ? (size_t)size : sizeof text - 1, printable,
                  sizeof printable);
    const grt_log_message message = {
        .struct_size = sizeof message, .level = level, .category = category, .text = printable};
    pthread_rwlock_rdlock(&lock);
    if (listener && grt_log_is_on(level))
        listener(listener_user, &message);
    pthread_rwlock_unlock(&lock);
}
