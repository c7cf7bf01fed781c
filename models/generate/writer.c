/* SPDX-License-Identifier: Apache-2.0 */
// See writer.h. Protobuf allows a message's fields to come in any order and in pieces, so the file is the
// packed model without its graph, then the graph field: the packed graph without initializers, then each
// initializer as its packed description followed by a raw_data field whose bytes are computed as they are
// written.
#define _POSIX_C_SOURCE 200809L
#include "writer.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    TAG_MODEL_GRAPH = 7 << 3 | 2,
    TAG_GRAPH_INITIALIZER = 5 << 3 | 2,
    TAG_TENSOR_RAW_DATA = 9 << 3 | 2,
    ALIGNMENT = 4096,    // of a tensor in the external file, so that it can be mapped
    INLINE_BYTES = 1024, // smaller tensors stay in the model: shapes and scalars are needed to read it
    BUFFER_BYTES = 1 << 22,
};

#define INLINE_LIMIT 1500000000u

struct output {
    FILE *file;
    char *temporary;
    const char *path;
    uint64_t offset;
};

struct progress {
    bool shown;
    uint64_t done, total, next;
    double start;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void progress_add(struct progress *p, uint64_t bytes)
{
    p->done += bytes;
    if (!p->shown || p->done < p->next)
        return;
    p->next = p->done + p->total / 200;
    double elapsed = now() - p->start;
    fprintf(stderr, "\rwriting weights %3.0f%%  %.2f of %.2f GB  %.2f GB/s ",
            100.0 * (double)p->done / (double)p->total, 1e-9 * (double)p->done, 1e-9 * (double)p->total,
            elapsed > 0 ? 1e-9 * (double)p->done / elapsed : 0.0);
}

static bool output_open(struct output *o, const char *path)
{
    size_t length = strlen(path);
    struct stat existing;
    *o = (struct output){.path = path, .temporary = malloc(length + sizeof ".part")};
    if (!o->temporary) {
        fputs("grt-models: out of memory\n", stderr);
        return false;
    }
    // Renaming over a device would replace it.
    if (stat(path, &existing) == 0 && !S_ISREG(existing.st_mode)) {
        fprintf(stderr, "grt-models: %s exists and is not a regular file\n", path);
        return false;
    }
    memcpy(o->temporary, path, length);
    memcpy(o->temporary + length, ".part", sizeof ".part");
    o->file = fopen(o->temporary, "wb");
    if (!o->file) {
        fprintf(stderr, "grt-models: cannot write %s: %s\n", o->temporary, strerror(errno));
        return false;
    }
    return true;
}

static bool output_write(struct output *o, const void *data, size_t bytes)
{
    if (bytes && fwrite(data, 1, bytes, o->file) != bytes) {
        fprintf(stderr, "\ngrt-models: writing %s failed: %s\n", o->temporary, strerror(errno));
        return false;
    }
    o->offset += bytes;
    return true;
}

// Keeps the file when ok, removes it otherwise.
static bool output_close(struct output *o, bool ok)
{
    if (o->file && fclose(o->file) != 0 && ok) {
        fprintf(stderr, "\ngrt-models: writing %s failed: %s\n", o->temporary, strerror(errno));
        ok = false;
    }
    if (ok && o->file && rename(o->temporary, o->path) != 0) {
        fprintf(stderr, "\ngrt-models: cannot rename %s to %s: %s\n", o->temporary, o->path, strerror(errno));
        ok = false;
    }
    if (!ok && o->file)
        unlink(o->temporary);
    free(o->temporary);
    *o = (struct output){0};
    return ok;
}

static size_t varint(uint64_t value, uint8_t *out)
{
    size_t n = 0;
    for (; value >= 0x80; value >>= 7)
        out[n++] = (uint8_t)(value | 0x80);
    out[n++] = (uint8_t)value;
    return n;
}

// The tag and length that open a length-delimited field. All tags here fit in one byte.
static size_t field_head(int tag, uint64_t length, uint8_t *out)
{
    out[0] = (uint8_t)tag;
    return 1 + varint(length, out + 1);
}

static bool write_head(struct output *o, int tag, uint64_t length)
{
    uint8_t head[11];
    return output_write(o, head, field_head(tag, length, head));
}

static bool write_message(struct output *o, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes) {
        fprintf(stderr, "grt-models: out of memory for %zu bytes of model description\n", size);
        return false;
    }
    protobuf_c_message_pack(message, bytes);
    bool ok = output_write(o, bytes, size);
    free(bytes);
    return ok;
}

static bool write_data(struct output *o, const struct gen_tensor *t, char *buffer, struct progress *p)
{
    if (t->literal)
        return output_write(o, t->literal, t->bytes);
    size_t block_bytes = GEN_FILL_BLOCK * (t->fill.half ? sizeof(uint16_t) : sizeof(float));
    uint64_t block = 0;
    for (size_t left = t->bytes; left;) {
        size_t filled = 0;
        while (filled < BUFFER_BYTES && filled < left) {
            gen_fill_block(&t->fill, block++, buffer + filled);
            filled += block_bytes;
        }
        size_t bytes = filled < left ? filled : left;
        if (!output_write(o, buffer, bytes))
            return false;
        progress_add(p, bytes);
        left -= bytes;
    }
    return true;
}

static void add_external_entry(struct gen *g, Onnx__TensorProto *proto, const char *key, char *value)
{
    Onnx__StringStringEntryProto *entry = gen_alloc(g, sizeof *entry);
    onnx__string_string_entry_proto__init(entry);
    entry->key = gen_format(g, "%s", key);
    entry->value = value;
    proto->external_data[proto->n_external_data++] = entry;
}

static bool is_external(const struct gen_tensor *t)
{
    return t->proto->n_external_data > 0;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool write_external(struct gen *g, const char *data_path, char *buffer, struct progress *p,
                           uint64_t *out_bytes)
{
    struct output o;
    bool ok = output_open(&o, data_path);
    for (size_t i = 0; ok && i < g->n_tensors; i++) {
        struct gen_tensor *t = &g->tensors[i];
        if (t->bytes < INLINE_BYTES)
            continue;
        static const char zeros[ALIGNMENT];
        ok = output_write(&o, zeros, (ALIGNMENT - o.offset % ALIGNMENT) % ALIGNMENT);
        t->proto->has_data_location = 1;
        t->proto->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
        t->proto->external_data = gen_alloc(g, 3 * sizeof(Onnx__StringStringEntryProto *));
        add_external_entry(g, t->proto, "location", gen_format(g, "%s", base_name(data_path)));
        add_external_entry(g, t->proto, "offset", gen_format(g, "%llu", (unsigned long long)o.offset));
        add_external_entry(g, t->proto, "length", gen_format(g, "%zu", t->bytes));
        ok = ok && write_data(&o, t, buffer, p);
    }
    *out_bytes = o.offset;
    return output_close(&o, ok);
}

// Bytes of an initializer message, without the tag and length that open it.
static uint64_t initializer_size(const struct gen_tensor *t)
{
    uint8_t head[11];
    uint64_t size = protobuf_c_message_get_packed_size(&t->proto->base);
    return is_external(t) ? size : size + field_head(TAG_TENSOR_RAW_DATA, t->bytes, head) + t->bytes;
}

static bool write_initializer(struct output *o, const struct gen_tensor *t, char *buffer, struct progress *p)
{
    if (!write_head(o, TAG_GRAPH_INITIALIZER, initializer_size(t)) || !write_message(o, &t->proto->base))
        return false;
    return is_external(t) || (write_head(o, TAG_TENSOR_RAW_DATA, t->bytes) && write_data(o, t, buffer, p));
}

static bool write_model(struct gen *g, const char *path, char *buffer, struct progress *p,
                        uint64_t *out_bytes)
{
    uint8_t head[11];
    uint64_t graph_size = protobuf_c_message_get_packed_size(&g->graph.base);
    for (size_t i = 0; i < g->n_tensors; i++) {
        uint64_t size = initializer_size(&g->tensors[i]);
        graph_size += field_head(TAG_GRAPH_INITIALIZER, size, head) + size;
    }
    struct output o;
    bool ok = output_open(&o, path) && write_message(&o, &g->model.base) &&
              write_head(&o, TAG_MODEL_GRAPH, graph_size) && write_message(&o, &g->graph.base);
    for (size_t i = 0; ok && i < g->n_tensors; i++)
        ok = write_initializer(&o, &g->tensors[i], buffer, p);
    *out_bytes = o.offset;
    return output_close(&o, ok);
}

bool gen_write(struct gen *g, const char *path, bool external, struct gen_written *out_written)
{
    struct progress p = {.start = now(), .shown = isatty(STDERR_FILENO)};
    for (size_t i = 0; i < g->n_tensors; i++)
        p.total += g->tensors[i].literal ? 0 : g->tensors[i].bytes;
    if (p.total > INLINE_LIMIT)
        external = true;

    bool ok = false;
    uint64_t data_bytes = 0, model_bytes = 0;
    char *data_path = gen_format(g, "%s.data", path);
    char *buffer = malloc(BUFFER_BYTES);
    if (!buffer)
        fputs("grt-models: out of memory for a write buffer\n", stderr);
    else
        ok = (!external || write_external(g, data_path, buffer, &p, &data_bytes)) &&
             write_model(g, path, buffer, &p, &model_bytes);
    if (buffer && external && !ok)
        unlink(data_path);
    free(buffer);
    if (p.shown)
        fputs("\r\033[K", stderr);
    *out_written = (struct gen_written){
        .bytes = data_bytes + model_bytes, .external = external, .seconds = now() - p.start};
    return ok;
}
