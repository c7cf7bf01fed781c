/* SPDX-License-Identifier: Apache-2.0 */
/* See state_pairs.h. Metadata is what plans keep as it is, and what exporters can write themselves. */
#include "graph/state_pairs.h"

#include <string.h>

static bool is_name(const char *name, const char *text, size_t size)
{
    return !strncmp(name, text, size) && !name[size];
}

static bool is_output(const ir_graph *graph, const char *text, size_t size)
{
    for (int32_t i = 0; i < graph->n_outputs; i++)
        if (is_name(graph->output_names[i], text, size))
            return true;
    return false;
}

static bool is_input(const ir_graph *graph, const char *text, size_t size)
{
    for (int32_t i = 0; i < graph->n_inputs; i++)
        if (is_name(graph->inputs[i]->name, text, size))
            return true;
    return false;
}

/* Names may have a '=', too. */
static grt_status compile_check_pair(const ir_graph *graph, const char *line, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (line[i] == '=' && is_output(graph, line, i) && is_input(graph, line + i + 1, size - i - 1))
            return GRT_OK;
    return grt_fail(GRT_STATUS_INVALID_ARGUMENT,
                    "grt_compile_options.state: '%.*s' is not OUTPUT=INPUT with names of the model",
                    (int)(size < 200 ? size : 200), line);
}

grt_status state_pairs_declare(ir_module *module, const char *pairs)
{
    for (const char *line = pairs; *line;) {
        const size_t size = strcspn(line, "\n");
        if (size)
            GRT_TRY(compile_check_pair(module->main, line, size));
        line += size + (line[size] == '\n');
    }
    grt_metadata *metadata = &module->metadata;
    grt_metadata_entry *entries = GRT_ARENA_ARRAY(module->arena, grt_metadata_entry, metadata->n_entries + 1);
    if (!entries)
        return grt_fail_memory((metadata->n_entries + 1) * sizeof *entries);
    size_t n = 0;
    for (size_t i = 0; i < metadata->n_entries; i++)
        if (strcmp(metadata->entries[i].key, "graphrt.state") != 0)
            entries[n++] = metadata->entries[i];
    entries[n++] =
        (grt_metadata_entry){.key = "graphrt.state", .value = grt_arena_strdup(module->arena, pairs)};
    metadata->entries = entries;
    metadata->n_entries = n;
    return grt_arena_failed(module->arena) ? grt_fail_memory(0) : GRT_OK;
}
