/* SPDX-License-Identifier: Apache-2.0 */
/* Lower bound of a session's start: time of the CUDA driver and the bus, without libgraphrt.
 *
 * usage: init_scaling_floor N [FILE [READERS]]
 *
 * Prints one JSON object, milliseconds: the first CUDA call ("driver"), contexts on N GPUs from a thread each
 * ("contexts"), and with a file: page-locking a ring ("pin"), allowing GPUs to read from each other
 * ("peers"), and the file's bytes from the page cache onto every GPU: all from the host ("direct"), or a
 * share each and the rest from the others ("shared"). Best of three. */
#include <cuda_runtime_api.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { MAX = 64, SLOTS = 2, CHUNK = 4 << 20 };

static int n, readers, fd;
static size_t size, chunks;
static char *blocks[MAX], *ring;
static atomic_size_t next_chunk;
static bool shared;

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static void must(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "init_scaling_floor: %s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}
#define CUDA(call) must((call), #call)

static void in_threads(int count, void *(*work)(void *))
{
    pthread_t threads[256];
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

static void *make_context(void *arg)
{
    CUDA(cudaSetDevice((int)(intptr_t)arg));
    CUDA(cudaFree(NULL));
    return NULL;
}

static void *make_block(void *arg)
{
    CUDA(cudaSetDevice((int)(intptr_t)arg));
    CUDA(cudaMalloc((void **)&blocks[(intptr_t)arg], chunks * CHUNK));
    return NULL;
}

static void *allow_peers(void *arg)
{
    CUDA(cudaSetDevice((int)(intptr_t)arg));
    for (int j = 0; j < n; j++)
        if (j != (int)(intptr_t)arg && cudaDeviceEnablePeerAccess(j, 0) != cudaSuccess)
            cudaGetLastError();
    return NULL;
}

static void *read_chunks(void *arg)
{
    const size_t me = (size_t)(intptr_t)arg;
    cudaStream_t streams[MAX];
    cudaEvent_t events[SLOTS][MAX];
    bool used[SLOTS][MAX] = {{false}};
    for (int i = 0; i < n; i++) {
        CUDA(cudaSetDevice(i));
        CUDA(cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking));
        for (int k = 0; k < SLOTS; k++)
            CUDA(cudaEventCreateWithFlags(&events[k][i], cudaEventDisableTiming));
    }
    size_t c;
    for (int k = 0; (c = atomic_fetch_add(&next_chunk, 1)) < chunks; k = (k + 1) % SLOTS) {
        char *slot = ring + (me * SLOTS + (size_t)k) * CHUNK;
        for (int i = 0; i < n; i++)
            if (used[k][i])
                CUDA(cudaEventSynchronize(events[k][i]));
        const ssize_t got = pread(fd, slot, CHUNK, (off_t)(c * CHUNK));
        for (int i = 0; i < n; i++) {
            used[k][i] = got > 0 && (!shared || (int)(c % (size_t)n) == i);
            if (!used[k][i])
                continue;
            CUDA(cudaSetDevice(i));
            CUDA(cudaMemcpyAsync(blocks[i] + c * CHUNK, slot, (size_t)got, cudaMemcpyHostToDevice,
                                 streams[i]));
            CUDA(cudaEventRecord(events[k][i], streams[i]));
        }
    }
    for (int i = 0; i < n; i++) {
        CUDA(cudaSetDevice(i));
        CUDA(cudaStreamSynchronize(streams[i]));
        CUDA(cudaStreamDestroy(streams[i]));
        for (int k = 0; k < SLOTS; k++)
            CUDA(cudaEventDestroy(events[k][i]));
    }
    return NULL;
}

static void *gather(void *arg)
{
    const int me = (int)(intptr_t)arg;
    cudaStream_t stream;
    CUDA(cudaSetDevice(me));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (size_t c = 0; c < chunks; c++) {
        const int from = (int)(c % (size_t)n);
        if (from != me)
            CUDA(cudaMemcpyPeerAsync(blocks[me] + c * CHUNK, me, blocks[from] + c * CHUNK, from, CHUNK,
                                     stream));
    }
    CUDA(cudaStreamSynchronize(stream));
    CUDA(cudaStreamDestroy(stream));
    return NULL;
}

static double best_load(bool share)
{
    double best = 1e30;
    shared = share;
    for (int round = 0; round < 3; round++) {
        const double begin = now_ms();
        atomic_store(&next_chunk, 0);
        in_threads(readers, read_chunks);
        if (share && n > 1)
            in_threads(n, gather);
        const double ms = now_ms() - begin;
        best = ms < best ? ms : best;
    }
    return best;
}

static void load_file(const char *path)
{
    struct stat st;
    fd = open(path, O_RDONLY);
    if (fd < 0 || fstat(fd, &st) != 0) {
        perror(path);
        exit(1);
    }
    size = (size_t)st.st_size;
    chunks = (size + CHUNK - 1) / CHUNK;
    in_threads(n, make_block);
    double begin = now_ms();
    CUDA(cudaHostAlloc((void **)&ring, (size_t)readers * SLOTS * CHUNK, cudaHostAllocPortable));
    printf(", \"pin_ms\": %.3f, \"pin_bytes\": %zu", now_ms() - begin, (size_t)readers * SLOTS * CHUNK);
    begin = now_ms();
    in_threads(n, allow_peers);
    printf(", \"peers_ms\": %.3f", now_ms() - begin);
    printf(", \"direct_ms\": %.3f", best_load(false));
    printf(", \"shared_ms\": %.3f, \"file_bytes\": %zu", best_load(true), size);
}

int main(int argc, char **argv)
{
    const double start = now_ms();
    int count = 0;
    CUDA(cudaGetDeviceCount(&count));
    const double counted = now_ms();
    n = argc > 1 ? atoi(argv[1]) : count;
    if (n < 1 || n > count || n > MAX) {
        fprintf(stderr, "usage: init_scaling_floor N [FILE [READERS]]; there are %d GPUs\n", count);
        return 2;
    }
    readers = argc > 3 ? atoi(argv[3]) : 16;
    readers = readers < 1 ? 1 : readers > 128 ? 128 : readers;
    in_threads(n, make_context);
    const double made = now_ms();
    printf("{\"devices\": %d, \"driver_ms\": %.3f, \"contexts_ms\": %.3f, \"ready_ms\": %.3f", n,
           counted - start, made - counted, made - start);
    if (argc > 2)
        load_file(argv[2]);
    printf("}\n");
    return 0;
}
