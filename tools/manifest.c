/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/manifest.h"

#include "tools/report.h"
#include "tools/whole_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

static bool manifest_fail_at(const char *path)
{
    tool_error("%s: %s", path, strerror(errno));
    return false;
}

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static json_t *describe_job(const char *model, const shard *s, size_t n_inputs)
{
    struct stat st;
    json_t *job = json_object();
    json_object_set_new(job, "model", json_text(model));
    json_object_set_new(job, "model_bytes", json_integer(stat(model, &st) == 0 ? (json_int_t)st.st_size : 0));
    json_object_set_new(job, "inputs", json_integer((json_int_t)n_inputs));
    json_object_set_new(job, "shards", json_integer((json_int_t)s->count));
    return job;
}

static json_t *read_job(int fd)
{
    char text[PATH_SIZE * 2];
    const ssize_t size = pread(fd, text, sizeof text, 0);
    return size > 0 ? json_loadb(text, (size_t)size, 0, NULL) : NULL;
}

static bool write_job(int fd, const char *path, const json_t *job)
{
    char *text = json_dumps(job, JSON_COMPACT);
    const bool ok = text && ftruncate(fd, 0) == 0 && write_fully(fd, text, strlen(text));
    free(text);
    return ok || manifest_fail_at(path);
}

/* What is there must be this job; only its number of processes may change, while none is at work. */
static bool same_job(const json_t *there, const json_t *job, bool alone, const char *path)
{
    static const char *const keys[] = {"model", "model_bytes", "inputs", "shards"};
    for (size_t i = 0; there && i < (alone ? 3 : 4); i++) {
        const json_t *a = json_object_get(there, keys[i]), *b = json_object_get(job, keys[i]);
        if (json_equal(a, b))
            continue;
        char *x = json_dumps(a, JSON_ENCODE_ANY), *y = json_dumps(b, JSON_ENCODE_ANY);
        tool_error("%s is of another job: '%s' was %s and is %s. %s", path, keys[i], x ? x : "?", y ? y : "?",
                   i < 3 ? "Use another --output-dir, or remove that one"
                         : "Wait until the other one has ended");
        free(x);
        free(y);
        return false;
    }
    return true;
}

/* All processes of a job share its lock. The first one has it alone for a moment, and says what the job is.
 */
static bool join_job(manifest *m, const char *directory, const char *model, const shard *s)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/job.json", directory);
    m->job = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (m->job < 0)
        return manifest_fail_at(path);
    json_t *job = describe_job(model, s, m->n);
    const bool alone = flock(m->job, LOCK_EX | LOCK_NB) == 0;
    if (!alone && flock(m->job, LOCK_SH) != 0) {
        json_decref(job);
        return manifest_fail_at(path);
    }
    json_t *there = read_job(m->job);
    bool ok = same_job(there, job, alone, path) && (!alone || write_job(m->job, path, job));
    if (ok && alone && flock(m->job, LOCK_SH) != 0)
        ok = manifest_fail_at(path);
    json_decref(there);
    json_decref(job);
    return ok;
}

static bool note_line(manifest *m, const char *text, size_t size, const input_lists *l, const char *path)
{
    json_t *line = json_loadb(text, size, 0, NULL); /* NULL: a process was killed while it wrote the line */
    const json_int_t index = json_integer_value(json_object_get(line, "index"));
    const char *input = json_string_value(json_object_get(line, "input"));
    bool ok = true;
    if (input && index >= 0 && (size_t)index < m->n) {
        const char *now = last_part(input_lists_file(l, (size_t)index));
        ok = !strcmp(input, now);
        if (!ok)
            tool_error("%s: input %zu was %s and is %s now: the list of inputs has changed. Use another "
                       "--output-dir",
                       path, (size_t)index, input, now);
        m->n_done += !m->done[index];
        m->done[index] = true;
    }
    json_decref(line);
    return ok;
}

static bool note_file(manifest *m, const char *path, const input_lists *l)
{
    FILE *f = fopen(path, "re");
    char *line = NULL;
    size_t room = 0;
    bool ok = f || manifest_fail_at(path);
    for (ssize_t size; ok && (size = getline(&line, &room, f)) > 0;)
        ok = note_line(m, line, (size_t)size, l, path);
    free(line);
    if (f)
        fclose(f);
    return ok;
}

static int is_manifest(const struct dirent *entry)
{
    const size_t size = strlen(entry->d_name);
    return size > 12 && !strncmp(entry->d_name, "shard-", 6) && !strcmp(entry->d_name + size - 6, ".jsonl");
}

static bool note_files(manifest *m, const char *directory, const input_lists *l)
{
    struct dirent **entries = NULL;
    const int n = scandir(directory, &entries, is_manifest, alphasort);
    bool ok = n >= 0 || manifest_fail_at(directory);
    for (int i = 0; i < n; i++) {
        char path[PATH_SIZE];
        snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name);
        ok = ok && note_file(m, path, l);
        free(entries[i]);
    }
    free(entries);
    return ok;
}

/* One process works on a shard. A line that another one left unfinished is ended, so that the next is a line
 * of its own. */
static bool open_lines(manifest *m, const char *directory, const shard *s)
{
    char path[PATH_SIZE], last = '\n';
    snprintf(path, sizeof path, "%s/shard-%zu-of-%zu.jsonl", directory, s->index, s->count);
    m->lines = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (m->lines < 0)
        return manifest_fail_at(path);
    if (flock(m->lines, LOCK_EX | LOCK_NB) != 0) {
        if (errno != EWOULDBLOCK)
            return manifest_fail_at(path);
        tool_error("%s: another process works on shard %zu of %zu (this one was started by %s)", path,
                   s->index, s->count, s->launcher);
        return false;
    }
    const off_t end = lseek(m->lines, 0, SEEK_END);
    if (end > 0 && pread(m->lines, &last, 1, end - 1) == 1 && last != '\n' && !write_fully(m->lines, "\n", 1))
        return manifest_fail_at(path);
    return true;
}

static int is_temporary(const struct dirent *entry)
{
    return !strncmp(entry->d_name, ".graphrt.tmp-", 13);
}

/* What killed processes left of the inputs that this one is going to do: files that were not complete. */
static void remove_unfinished(const manifest *m, const char *directory, const shard *s)
{
    for (size_t i = s->index; i < m->n; i += s->count) {
        char path[PATH_SIZE];
        struct dirent **entries = NULL;
        snprintf(path, sizeof path, "%s/%06zu", directory, i);
        const int n = m->done[i] ? 0 : scandir(path, &entries, is_temporary, NULL);
        for (int k = 0; k < n; k++) {
            char file[PATH_SIZE * 2];
            snprintf(file, sizeof file, "%s/%s", path, entries[k]->d_name);
            unlink(file);
            free(entries[k]);
        }
        free(entries);
    }
}

bool manifest_open(manifest *m, const char *directory, const char *model, const shard *s,
                   const input_lists *l)
{
    *m = (manifest){.job = -1, .lines = -1, .n = l->n_files};
    if (mkdir(directory, 0777) != 0 && errno != EEXIST)
        return manifest_fail_at(directory);
    m->done = calloc(m->n + 1, sizeof *m->done);
    if (!m->done)
        tool_error("out of memory");
    if (!m->done || !join_job(m, directory, model, s) || !open_lines(m, directory, s) ||
        !note_files(m, directory, l))
        return false;
    remove_unfinished(m, directory, s);
    return true;
}

bool manifest_add(const manifest *m, size_t index, const char *file, double ms)
{
    json_t *line = json_object();
    json_object_set_new(line, "index", json_integer((json_int_t)index));
    json_object_set_new(line, "input", json_text(last_part(file)));
    json_object_set_new(line, "ms", json_real(ms));
    char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(6));
    const size_t size = text ? strlen(text) : 0;
    if (text)
        text[size] = '\n'; /* in place of its end: one write is one line */
    const bool ok = text && write_fully(m->lines, text, size + 1);
    if (!ok)
        tool_error("cannot note that %s is done: %s", file, text ? strerror(errno) : "out of memory");
    free(text);
    json_decref(line);
    return ok;
}

void manifest_close(manifest *m)
{
    if (m->lines >= 0)
        close(m->lines);
    if (m->job >= 0)
        close(m->job);
    free(m->done);
    *m = (manifest){.job = -1, .lines = -1};
}
