/* SPDX-License-Identifier: Apache-2.0 */
/* What a profiler is to NVTX: loaded by NVTX_INJECTION64_PATH, it writes a line for each range of the process
 * to the file that NVTX_LISTENER_LOG names: its depth or "request", and its text. */
#include <nvtx3/nvToolsExt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static FILE *ranges;
static _Thread_local int depth;
static uint64_t started;

static int push_range(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *range)
{
    (void)domain;
    fprintf(ranges, "%d %u %s\n", depth, (unsigned)range->category, range->message.ascii);
    return depth++;
}

static int pop_range(nvtxDomainHandle_t domain)
{
    (void)domain;
    return --depth;
}

static nvtxRangeId_t start_range(nvtxDomainHandle_t domain, const nvtxEventAttributes_t *range)
{
    (void)domain;
    const uint64_t id = __atomic_add_fetch(&started, 1, __ATOMIC_RELAXED);
    fprintf(ranges, "begin %llu %s\n", (unsigned long long)id, range->message.ascii);
    return id;
}

static void end_range(nvtxDomainHandle_t domain, nvtxRangeId_t id)
{
    (void)domain;
    fprintf(ranges, "end %llu\n", (unsigned long long)id);
}

static nvtxDomainHandle_t create_domain(const char *name)
{
    fprintf(ranges, "domain %s\n", name);
    return (nvtxDomainHandle_t)&ranges;
}

static void close_ranges(void)
{
    fclose(ranges);
}

__attribute__((visibility("default"))) int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table);
int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table)
{
    NvtxFunctionTable table = NULL;
    unsigned int size = 0;
    const NvtxExportTableCallbacks *callbacks =
        (const NvtxExportTableCallbacks *)get_table(NVTX_ETID_CALLBACKS);
    ranges = fopen(getenv("NVTX_LISTENER_LOG"), "w");
    if (!ranges || !callbacks || !callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size))
        return 0;
    *table[NVTX_CBID_CORE2_DomainRangePushEx] = (NvtxFunctionPointer)push_range;
    *table[NVTX_CBID_CORE2_DomainRangePop] = (NvtxFunctionPointer)pop_range;
    *table[NVTX_CBID_CORE2_DomainRangeStartEx] = (NvtxFunctionPointer)start_range;
    *table[NVTX_CBID_CORE2_DomainRangeEnd] = (NvtxFunctionPointer)end_range;
    *table[NVTX_CBID_CORE2_DomainCreateA] = (NvtxFunctionPointer)create_domain;
    atexit(close_ranges);
    return 1;
}
