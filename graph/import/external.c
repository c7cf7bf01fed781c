/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor data in files beside the model: opened so that no name can lead out of the model's directory. */
#include "graph/import/import.h"
#include "graph/import/importer.h"

#include "src/base/checked.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__linux__) && __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#define HAVE_OPENAT2 1
#endif

/* What external_data says. */
typedef struct place {
    const char *location;
    int64_t offset, length; /* length -1: not said */
} place;

static grt_status fail_external(const Onnx__TensorProto *proto, grt_status status, const char *format, ...)
    GRT_PRINTF(3, 4);
static grt_status fail_external(const Onnx__TensorProto *proto, grt_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    grt_fail_v(status, format, args);
    va_end(args);
    return grt_fail_context(status, "external data of tensor '%s'", text_or_empty(proto->name));
}

static bool parse_number(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    if (*text < '0' || *text > '9')
        return false;
    long long value = strtoll(text, &end, 10);
    *out = value;
    return !errno && !*end;
}

static grt_status parse_place(const Onnx__TensorProto *proto, place *out)
{
    *out = (place){NULL, 0, -1};
    for (size_t i = 0; i < proto->n_external_data; i++) {
        const char *key = text_or_empty(proto->external_data[i]->key);
        const char *value = text_or_empty(proto->external_data[i]->value);
        int64_t *number = !strcmp(key, "offset")   ? &out->offset
                          : !strcmp(key, "length") ? &out->length
                                                   : NULL;
        if (!strcmp(key, "location"))
            out->location = value;
        else if (number && !parse_number(value, number))
            return fail_external(proto, GRT_STATUS_INVALID_MODEL, "%s '%s' is not a number of bytes", key,
                                 value);
    }
    if (!out->location || !*out->location)
        return fail_external(proto, GRT_STATUS_INVALID_MODEL, "no location is given");
    return GRT_OK;
}

/* Relative, and no part of it "..": checked as text also where the kernel checks it too. */
static bool external_is_inside(const char *path)
{
    if (*path == '/')
        return false;
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (n == 2 && p[0] == '.' && p[1] == '.')
            return false;
        p += n;
        p += *p == '/';
    }
    return true;
}

/* Without openat2: one directory at a time, following no link. */
static int open_stepwise(int dir, const char *path, bool follow)
{
    int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW);
    int at = dup(dir);
    while (at >= 0) {
        size_t n = strcspn(path, "/");
        char part[256];
        if (n >= sizeof part) {
            close(at);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(part, path, n);
        part[n] = 0;
        path += n;
        bool last = !*path;
        path += !last;
        int next = n ? openat(at, part, last ? flags : flags | O_DIRECTORY) : dup(at);
        int error = errno;
        close(at);
        errno = error;
        if (last || next < 0)
            return next;
        at = next;
    }
    return at;
}

static int open_inside(int dir, const char *path, bool allow_symlinks)
{
#if HAVE_OPENAT2
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS};
    /* The links of a Hugging Face cache lead out of the model's directory: allowing them means following
     * them. */
    if (!allow_symlinks) {
        int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
        if (fd >= 0 || (errno != ENOSYS && errno != EPERM && errno != EINVAL))
            return fd;
    }
#endif
    return open_stepwise(dir, path, allow_symlinks);
}

static int open_directory_of(const char *model)
{
    const char *slash = strrchr(model, '/');
    if (!slash)
        return open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    char *dir = strndup(model, slash == model ? 1 : (size_t)(slash - model));
    int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    free(dir);
    return fd;
}

static void external_unmap(void *object)
{
    external_file *file = object;
    grt_file_map_close(&file->map);
}

static grt_status map_fd(importer *imp, const Onnx__TensorProto *proto, int fd, external_file *file)
{
    static const uint8_t nothing[1];
    const grt_status status = grt_file_map_fd(file->location, fd, &file->map);
    if (status != GRT_OK)
        return grt_fail_context(S_ISREG(file->map.info.st_mode) ? status : GRT_STATUS_INVALID_MODEL,
                                "external data of tensor '%s'", text_or_empty(proto->name));
    file->data = file->map.data ? (const uint8_t *)file->map.data : nothing;
    file->size = file->map.size;
    file->next = imp->files;
    imp->files = file;
    return grt_arena_defer(imp->arena, external_unmap, file) ? GRT_OK : grt_fail_memory(0);
}

/* What the caller has given in memory. */
static const grt_external_data *find_given(const importer *imp, const char *location)
{
    for (size_t i = 0; i < imp->source->n_external; i++) {
        const grt_external_data *given = &imp->source->external[i];
        if (given->location && !strcmp(given->location, location))
            return given;
    }
    return NULL;
}

static grt_status external_map_file(importer *imp, const Onnx__TensorProto *proto, const char *location,
                                    external_file **out)
{
    for (external_file *f = imp->files; f; f = f->next)
        if (!strcmp(f->location, location)) {
            *out = f;
            return GRT_OK;
        }
    external_file *file = GRT_ARENA_NEW(imp->arena, external_file);
    if (!file || !(file->location = grt_arena_strdup(imp->arena, location)))
        return grt_fail_memory(0);
    int dir = open_directory_of(imp->source->path);
    int fd = dir < 0 ? -1 : open_inside(dir, location, imp->source->allow_symlinks);
    int error = errno;
    if (dir >= 0)
        close(dir);
    if (fd < 0 && (error == ELOOP || error == EXDEV))
        return fail_external(
            proto, GRT_STATUS_INVALID_MODEL,
            "'%s' is a symbolic link; links are followed only when symlinks are explicitly allowed",
            location);
    if (fd < 0)
        return fail_external(proto, GRT_STATUS_IO, "'%s' beside '%s' cannot be opened: %s", location,
                             imp->source->path, strerror(error));
    grt_status status = map_fd(imp, proto, fd, file);
    close(fd);
    *out = file;
    return status;
}

grt_status import_external(importer *imp, const Onnx__TensorProto *proto, grt_tensor *out_tensor)
{
    grt_tensor t;
    place where;
    external_file *file;
    GRT_TRY(grt_pb_tensor_type(proto, &t));
    GRT_TRY(parse_place(proto, &where));
    if (proto->has_raw_data || proto->n_float_data || proto->n_int32_data || proto->n_int64_data ||
        proto->n_double_data || proto->n_uint64_data || proto->n_string_data)
        return fail_external(proto, GRT_STATUS_INVALID_MODEL, "the tensor has data of its own as well");
    if (t.dtype == GRT_DTYPE_STRING)
        return fail_external(proto, GRT_STATUS_INVALID_MODEL, "strings cannot be external");
    const grt_external_data *given = find_given(imp, where.location);
    if (given && given->size && !given->data)
        return fail_external(proto, GRT_STATUS_INVALID_ARGUMENT, "external_data '%s' is NULL",
                             where.location);
    if (!given && !imp->source->path)
        return fail_external(
            proto, GRT_STATUS_INVALID_MODEL,
            "the model was read from memory and has no directory to look for '%s' in; give that as "
            "external_data, or open the model by its path",
            where.location);
    if (!given && !external_is_inside(where.location))
        return fail_external(proto, GRT_STATUS_INVALID_MODEL,
                             "location '%s' is not a relative path inside the model's directory",
                             where.location);
    size_t bytes = grt_tensor_bytes(&t);
    char text[GRT_TYPE_TEXT_SIZE];
    if (where.length >= 0 && (uint64_t)where.length != bytes)
        return fail_external(proto, GRT_STATUS_INVALID_MODEL, "length is %" PRId64 " bytes, but %s takes %zu",
                             where.length, grt_tensor_text(&t, text), bytes);
    external_file memory = {0};
    if (given) {
        memory = (external_file){.data = given->data, .size = given->size};
        file = &memory;
    } else {
        GRT_TRY(external_map_file(imp, proto, where.location, &file));
    }
    if ((uint64_t)where.offset > file->size || bytes > file->size - (uint64_t)where.offset)
        return fail_external(proto, GRT_STATUS_INVALID_MODEL,
                             "%zu bytes at offset %" PRId64
                             " reach past the end of '%s', which has %zu bytes",
                             bytes, where.offset, where.location, file->size);
    GRT_TRY(grt_pb_tensor_place(&t, file->data + where.offset, imp->arena));
    *out_tensor = t;
    return GRT_OK;
}
