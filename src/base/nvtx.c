/* SPDX-License-Identifier: Apache-2.0 */
#include "src/base/nvtx.h"

#include "config.h"

#if HAVE_NVTX3

#include <nvtx3/nvToolsExt.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static bool nvtx_on; /* written once, before anything is told */
static nvtxDomainHandle_t nvtx_domain;

/* By grt_span_kind: categories, and names of what has no name of its own. */
static const char *const nvtx_kinds[] = {"request", "queue",  "copy in", "run",      "prepare", "upload",
                                         "step",    "replay", "capture", "download", "wait",    "copy out"};
enum { NVTX_KINDS = sizeof nvtx_kinds / sizeof *nvtx_kinds, NVTX_TEXT = 256 };

void grt_nvtx_look(void)
{
    const char *injected = getenv("NVTX_INJECTION64_PATH");
    if (!injected || !*injected)
        return;
    nvtx_domain = nvtxDomainCreateA("graphrt");
    for (uint32_t i = 0; i < NVTX_KINDS; i++)
        nvtxDomainNameCategoryA(nvtx_domain, i + 1, nvtx_kinds[i]);
    nvtx_on = true;
}

bool grt_nvtx_is_on(void)
{
    return nvtx_on;
}

static nvtxEventAttributes_t range_attributes(grt_span_kind kind, const char *text)
{
    nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                        .category = (uint32_t)kind + 1,
                                        .messageType = NVTX_MESSAGE_TYPE_ASCII};
    attributes.message.ascii = text;
    return attributes;
}

void grt_nvtx_push(const grt_span *span)
{
    char text[NVTX_TEXT];
    if (!nvtx_on)
        return;
    if (span->kind == GRT_SPAN_STEP)
        snprintf(text, sizeof text, "%s %s", span->op, span->name);
    else
        snprintf(text, sizeof text, "%s %s", nvtx_kinds[span->kind], span->name ? span->name : "");
    const nvtxEventAttributes_t attributes = range_attributes(span->kind, text);
    nvtxDomainRangePushEx(nvtx_domain, &attributes);
}

void grt_nvtx_pop(void)
{
    if (nvtx_on)
        nvtxDomainRangePop(nvtx_domain);
}

uint64_t grt_nvtx_start(uint64_t number, size_t lane)
{
    char text[NVTX_TEXT];
    if (!nvtx_on)
        return 0;
    snprintf(text, sizeof text, "request %" PRIu64 " in lane %zu", number, lane);
    const nvtxEventAttributes_t attributes = range_attributes(GRT_SPAN_REQUEST, text);
    return nvtxDomainRangeStartEx(nvtx_domain, &attributes);
}

void grt_nvtx_end(uint64_t range)
{
    if (nvtx_on)
        nvtxDomainRangeEnd(nvtx_domain, range);
}

#else

void grt_nvtx_look(void)
{
}

bool grt_nvtx_is_on(void)
{
    return false;
}

void grt_nvtx_push(const grt_span *span)
{
    (void)span;
}

void grt_nvtx_pop(void)
{
}

uint64_t grt_nvtx_start(uint64_t number, size_t lane)
{
    (void)number;
    (void)lane;
    return 0;
}

void grt_nvtx_end(uint64_t range)
{
    (void)range;
}

#endif
