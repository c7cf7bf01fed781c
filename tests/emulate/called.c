/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/emulate/called.h"

#include "src/call/op_call.h"
#include "tests/emulate/translate.h"

#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_TENSORS = 8, ZONE = 256 };

/* CUDA's headers first: they find the host's compiler, and device code only behind them. */
static const char head[] = "#include <cuda_runtime_api.h>\n"
                           "#include <cuda_bf16.h>\n"
                           "#include <cuda_fp16.h>\n"
                           "#include \"tests/emulate/launches.h\"\n";

/* What the module has for all kernels. */
static const char tail[] =
    "#include \"backends/cuda/watch.h\"\n"
    "#include <cstdio>\n"
    "static cuda_fault emulated_fault;\n"
    "extern \"C\" {\n"
    "grt_status cuda_watch_begin(const grt_run *run, const char *what, cuda_watch *out)\n"
    "{\n"
    "    *out = {&emulated_fault, run->desc, what};\n"
    "    return GRT_OK;\n"
    "}\n"
    "grt_status cuda_fail(cudaError_t, const char *expression, const char *, int)\n"
    "{\n"
    "    return grt_fail(GRT_STATUS_DEVICE, \"%s: %s\", expression, emulated::wrong ? emulated::wrong : "
    "\"\");\n"
    "}\n"
    "cudaError_t cuda_allow_shared(const void *) { return cudaSuccess; }\n"
    "bool *emulated_falling() { return &emulated::falling; }\n"
    "const char **emulated_wrong() { return &emulated::wrong; }\n"
    "const char *emulated_told()\n"
    "{\n"
    "    static char text[200];\n"
    "    const cuda_fault f = emulated_fault;\n"
    "    emulated_fault = {};\n"
    "    snprintf(text, sizeof text, \"input '%s' holds %lld at element %lld; %lld to %lld are there\", "
    "f.what, f.value, f.element, f.low, f.high);\n"
    "    return f.told ? text : nullptr;\n"
    "}\n"
    "}\n";

static bool read_file(const char *path, grt_text *out)
{
    char part[4096];
    FILE *file = fopen(path, "r");
    if (!file)
        return false;
    for (size_t n; (n = fread(part, 1, sizeof part - 1, file)) > 0;) {
        part[n] = 0;
        grt_text_add(out, "%s", part);
    }
    return fclose(file) == 0 && !out->failed;
}

static bool write_file(const char *path, const grt_text *text)
{
    FILE *file = fopen(path, "w");
    if (!file)
        return false;
    const bool written = fwrite(text->data, 1, text->size, file) == text->size;
    return fclose(file) == 0 && written;
}

static const char *source_folder(void)
{
    const char *set = getenv("srcdir");
    return set && *set ? set : ".";
}

/* A header that launches nothing stays where it is; one of whose assembly the translation knows nothing, too:
 * who includes it is not compiled. */
static bool translate_header(const char *from, const char *to)
{
    grt_text source = {0}, translated = {0};
    bool good = read_file(from, &source);
    if (good && strstr(grt_text_get(&source), "<<<") && emulate_translate(grt_text_get(&source), &translated))
        good = write_file(to, &translated);
    grt_text_release(&source);
    grt_text_release(&translated);
    return good;
}

static bool translate_headers(const char *folder)
{
    char from[512], to[512];
    snprintf(from, sizeof from, "%s/backends/cuda", source_folder());
    DIR *opened = opendir(from);
    bool good = opened != NULL;
    for (const struct dirent *entry; good && (entry = readdir(opened));) {
        const char *end = strrchr(entry->d_name, '.');
        if (!end || strcmp(end, ".cuh") != 0)
            continue;
        snprintf(from, sizeof from, "%s/backends/cuda/%.200s", source_folder(), entry->d_name);
        snprintf(to, sizeof to, "%.200s/backends/cuda/%.200s", folder, entry->d_name);
        good = translate_header(from, to);
    }
    if (opened)
        closedir(opened);
    return good;
}

static bool translate_file(const char *folder, const char *name)
{
    char from[512], to[512];
    grt_text source = {0}, whole = {0};
    snprintf(from, sizeof from, "%s/backends/cuda/ops/%s.cu", source_folder(), name);
    snprintf(to, sizeof to, "%s/%s.cc", folder, name);
    grt_text_add(&whole, "%s", head);
    bool good = read_file(from, &source) && emulate_translate(grt_text_get(&source), &whole);
    grt_text_add(&whole, "%s", tail);
    good = good && write_file(to, &whole);
    grt_text_release(&source);
    grt_text_release(&whole);
    return good;
}

/* With what the file shares with the CPU under its name, which the library does not export. */
static bool compile(const char *folder, const char *name)
{
    const char *compiler = getenv("CXX"), *from = source_folder();
    char command[4096], shared[600];
    snprintf(shared, sizeof shared, "%s/backends/shared/%s.c", from, name);
    if (access(shared, R_OK) != 0)
        shared[0] = 0;
    snprintf(command, sizeof command,
             "%s -std=c++17 -O1 -w -shared -fPIC -ffp-contract=off -I'%s' -I'%s' -I'%s/include' -I'%s' "
             "-o '%s/%s.so' '%s/%s.cc' -x c %s",
             compiler && *compiler ? compiler : "c++", folder, from, from, CUDA_INCLUDE, folder, name, folder,
             name, shared);
    return system(command) == 0; /* the compiler has said why */
}

bool emulate_open(const char *folder, const char *name, emulated_file *out_file)
{
    char path[512], table[64];
    snprintf(path, sizeof path, "%s/backends", folder);
    (void)mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/backends/cuda", folder);
    (void)mkdir(path, 0700);
    *out_file = (emulated_file){0};
    if (!translate_headers(folder) || !translate_file(folder, name) || !compile(folder, name))
        return false;
    snprintf(path, sizeof path, "%s/%s.so", folder, name);
    snprintf(table, sizeof table, "cuda_kernels_%s", name);
    out_file->opened = dlopen(path, RTLD_LAZY);
    if (!out_file->opened) {
        printf("%s\n", dlerror());
        return false;
    }
    bool *(*falling)(void);
    const char **(*wrong)(void);
    *(void **)&falling = dlsym(out_file->opened, "emulated_falling");
    *(void **)&wrong = dlsym(out_file->opened, "emulated_wrong");
    *(void **)&out_file->fault = dlsym(out_file->opened, "emulated_told");
    out_file->table = dlsym(out_file->opened, table);
    out_file->falling = falling();
    out_file->wrong = wrong();
    return out_file->table != NULL;
}

void emulate_close(emulated_file *file)
{
    if (file->opened)
        dlclose(file->opened);
}

/* ---- calls ---- */

typedef struct calling {
    grt_op_call call;
    grt_shape_scratch scratch;
    grt_arena *strings;
    grt_run_hooks hooks;
    grt_value in_values[MOST_TENSORS];
    const grt_tensor *in[MOST_TENSORS];
    grt_tensor *out[MOST_TENSORS], described[2 * MOST_TENSORS];
    unsigned char *workspace;
} calling;

static grt_status find_kernel(calling *c, const emulated_file *file)
{
    grt_run *run = &c->call.run;
    for (int32_t i = 0; i < run->n_out; i++)
        c->described[run->n_in + i] = *run->out[i];
    const grt_kernel_node node = {.desc = run->desc,
                                  .n_in = run->n_in,
                                  .n_out = run->n_out,
                                  .in = c->described,
                                  .out = c->described + run->n_in,
                                  .threads = 1};
    c->call.row = grt_kernel_find(&file->table, 1, &node, NULL);
    if (!c->call.row)
        return grt_fail_op(run->desc, GRT_STATUS_UNSUPPORTED, "the file has no such kernel");
    return c->call.row->create ? c->call.row->create(&node, &run->state) : GRT_OK;
}

static bool is_guard(const unsigned char *at)
{
    for (int i = 0; i < ZONE; i++)
        if (at[i] != 0xee)
            return false;
    return true;
}

static grt_status run_with_workspace(calling *c, const emulated_file *file)
{
    const size_t size = c->call.workspace_bytes, zone = (size + 63) & ~(size_t)63;
    c->workspace = aligned_alloc(64, zone + 2 * ZONE);
    if (!c->workspace)
        return grt_fail_memory(zone);
    memset(c->workspace, 0xee, zone + 2 * ZONE);
    c->call.run.workspace = c->workspace + ZONE;
    GRT_TRY(grt_op_call_run(&c->call));
    if (*file->wrong)
        return grt_fail_op(c->call.run.desc, GRT_STATUS_DEVICE, "%s", *file->wrong);
    if (!is_guard(c->workspace) || !is_guard(c->workspace + ZONE + zone))
        return grt_fail_op(c->call.run.desc, GRT_STATUS_DEVICE, "it wrote beside its workspace");
    const char *told = file->fault();
    return told ? grt_fail_op(c->call.run.desc, GRT_STATUS_INVALID_ARGUMENT, "%s", told) : GRT_OK;
}

grt_status emulate_call(const emulated_file *file, const grt_op_desc *desc, const grt_tensor *const *in,
                        int32_t n_in, grt_value *out, int32_t n_out, size_t *out_workspace)
{
    calling c = {.strings = grt_arena_create(), .hooks = grt_heap_hooks};
    c.hooks.executor = c.strings;
    c.call = (grt_op_call){.op = op_find(desc->domain, desc->op), .host_in = c.in};
    c.call.run = (grt_run){.desc = desc,
                           .in = c.in,
                           .out = c.out,
                           .n_in = n_in,
                           .n_out = n_out,
                           .threads = 1,
                           .hooks = &c.hooks};
    for (int32_t i = 0; i < n_in; i++) {
        if (!in[i]) /* omitted */
            continue;
        c.in_values[i].t = c.described[i] = *in[i];
        c.in[i] = &c.in_values[i].t;
    }
    for (int32_t i = 0; i < n_out; i++)
        c.out[i] = &out[i].t;
    *file->wrong = NULL;
    grt_status status = grt_shape_scratch_create(&c.scratch);
    if (status == GRT_OK)
        status = grt_op_call_infer(&c.call, &c.scratch);
    if (status == GRT_OK)
        status = find_kernel(&c, file);
    if (status == GRT_OK)
        status = grt_op_call_prepare(&c.call);
    if (status == GRT_OK)
        status = run_with_workspace(&c, file);
    *out_workspace = c.call.workspace_bytes;
    grt_op_call_release(&c.call);
    if (c.call.row && c.call.row->destroy)
        c.call.row->destroy(c.call.run.state);
    grt_shape_scratch_release(&c.scratch);
    grt_arena_release(c.strings);
    free(c.workspace);
    return status;
}
