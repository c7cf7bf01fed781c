/* SPDX-License-Identifier: Apache-2.0 */
// grt-models: writes one large ONNX model for benchmarks.
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "family.h"
#include "writer.h"

static const struct gen_family *const families[] = {
    &gen_resnet50,  &gen_mobilenet_v2, &gen_densenet121, &gen_bert,         &gen_vit_b16,
    &gen_phi3_mini, &gen_llama_stack,  &gen_deep_ffn,    &gen_parallel_fcn, &gen_chain,
};
enum { FAMILIES = sizeof families / sizeof *families };

struct request {
    const struct gen_family *family;
    int64_t values[GEN_MAX_OPTIONS];
    enum gen_dtype dtype;
    uint64_t seed;
    bool external;
    const char *path;
};

static void print_help(void)
{
    puts("Usage: grt-models FAMILY [--OPTION VALUE]... -o FILE.onnx\n"
         "Writes an ONNX model (opset 20) with a real topology and random, seeded weights.\n\n"
         "Options of every family:\n"
         "  -o, --output FILE    where to write; external weights go to FILE.data\n"
         "      --dtype TYPE     fp32 or fp16\n"
         "      --seed N         of the weights; the same seed gives the same bytes (default 1)\n"
         "      --external       keep weights in FILE.data (always so above 1.5 GB)\n"
         "      --help           this text\n");
    for (int f = 0; f < FAMILIES; f++) {
        printf("%s: %s\n", families[f]->name, families[f]->summary);
        for (const struct gen_option *o = families[f]->options; o->name; o++)
            printf("      --%-14s %s%s (default %lld)\n", o->name, o->help, o->symbol ? ", or sym" : "",
                   (long long)o->value);
    }
    puts("\nExit status: 0, or 2 after bad use or a failed write.");
}

static bool bad_use(const char *what, const char *which, const char *hint)
{
    fprintf(stderr, "grt-models: %s%s%s (--help lists what there is)\n", what, which, hint);
    return false;
}

static bool parse_integer(const char *text, int64_t low, int64_t high, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (errno || end == text || *end || value < low || value > high)
        return false;
    *out = value;
    return true;
}

static bool parse_family_option(struct request *r, const char *name, const char *text)
{
    for (size_t i = 0; r->family->options[i].name; i++) {
        const struct gen_option *o = &r->family->options[i];
        if (strcmp(o->name, name) != 0)
            continue;
        if (o->symbol && strcmp(text, "sym") == 0) {
            r->values[i] = o->symbol;
            return true;
        }
        if (parse_integer(text, o->low, o->high, &r->values[i]))
            return true;
        fprintf(stderr, "grt-models: --%s wants a number from %lld to %lld%s, not \"%s\"\n", name,
                (long long)o->low, (long long)o->high, o->symbol ? " or sym" : "", text);
        return false;
    }
    return bad_use(r->family->name, " has no option --", name);
}

static bool parse_option(struct request *r, const char *name, const char *text)
{
    int64_t seed;
    if (strcmp(name, "output") == 0) {
        r->path = text;
        return true;
    }
    if (strcmp(name, "dtype") == 0) {
        bool half = strcmp(text, "fp16") == 0;
        r->dtype = half ? GEN_FLOAT16 : GEN_FLOAT32;
        return half || strcmp(text, "fp32") == 0 || bad_use("--dtype wants fp32 or fp16, not ", text, "");
    }
    if (strcmp(name, "seed") == 0) {
        if (!parse_integer(text, 0, INT64_MAX, &seed))
            return bad_use("--seed wants a number, not ", text, "");
        r->seed = (uint64_t)seed;
        return true;
    }
    return parse_family_option(r, name, text);
}

static bool parse(int argc, char **argv, struct request *r)
{
    if (argc < 2)
        return bad_use("which family?", "", "");
    for (int f = 0; f < FAMILIES; f++)
        if (strcmp(argv[1], families[f]->name) == 0)
            r->family = families[f];
    if (!r->family)
        return bad_use("no family is called ", argv[1], "");
    r->dtype = r->family->dtype;
    r->seed = 1;
    for (size_t i = 0; r->family->options[i].name; i++)
        r->values[i] = r->family->options[i].value;
    for (int i = 2; i < argc; i++) {
        const char *name = strcmp(argv[i], "-o") == 0 ? "--output" : argv[i];
        if (strncmp(name, "--", 2) != 0)
            return bad_use("not an option: ", argv[i], "");
        if (strcmp(name, "--external") == 0) {
            r->external = true;
            continue;
        }
        if (i + 1 == argc)
            return bad_use(argv[i], " wants a value", "");
        if (!parse_option(r, name + 2, argv[++i]))
            return false;
    }
    const char *problem = r->family->check ? r->family->check(r->values) : NULL;
    if (problem)
        return bad_use(r->family->name, ": ", problem);
    return r->path || bad_use("say where to write the model with -o FILE.onnx", "", "");
}

static void print_size(FILE *to, uint64_t bytes)
{
    bool large = bytes >= 1000000000u;
    fprintf(to, "%.*f %s", large ? 2 : 1, (double)bytes * (large ? 1e-9 : 1e-6), large ? "GB" : "MB");
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help();
            return 0;
        }
    struct request r = {0};
    if (!parse(argc, argv, &r))
        return 2;
    struct gen g;
    gen_init(&g, r.family->name, r.dtype, r.seed);
    r.family->build(&g, r.values);
    struct gen_written written;
    bool ok = gen_write(&g, r.path, r.external, &written);
    if (ok) {
        printf("%s: %s, %zu nodes, %.1f million parameters, ", r.path, r.family->name, g.graph.n_node,
               1e-6 * (double)g.parameters);
        print_size(stdout, written.bytes);
        printf("%s, %.2f s\n", written.external ? " with external data" : "", written.seconds);
    }
    gen_release(&g);
    return ok ? 0 : 2;
}
