/* The tests of messages.h with shared memory alone, no message layer: between two ranks a ring of bytes for each direction, among
 * more a word of each that one rank adds up. No headers, no matching; every receive knows what comes.
 *
 *     cc -O3 -o raw_memory raw_memory.c
 *     ./raw_memory -n RANKS -t SECONDS [NAME | NAME:BYTES]...
 *
 * Ranks that have a core each are bound to it and spin; others let others run. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "messages.h"

enum { RING = MIB, CHUNK = 32 * KIB, RANKS = 64 };

/* One writer, one reader; counts go on for ever. */
struct ring {
    _Alignas(128) _Atomic uint64_t written;
    _Alignas(128) _Atomic uint64_t read;
    _Alignas(4096) unsigned char bytes[RING];
};
struct word {
    _Alignas(128) _Atomic uint64_t turn;
    double number;
};
struct shared {
    struct word words[RANKS + 1]; /* the last one is the answer */
    struct ring rings[2];         /* of the ranks that write */
};

static struct shared *shared;
static int has_core;
static uint64_t turn;

static void relax(void)
{
    if (!has_core)
        sched_yield();
#if defined(__x86_64__)
    else
        __builtin_ia32_pause();
#endif
}

static size_t least(size_t a, size_t b) { return a < b ? a : b; }

/* As much of what is left as the ring takes, one chunk at most; so of the next. */
static size_t put_some(const unsigned char *from, size_t left)
{
    struct ring *ring = &shared->rings[rank];
    uint64_t at = atomic_load_explicit(&ring->written, memory_order_relaxed);
    size_t place = at % RING, length = least(least(left, CHUNK), RING - place);
    if (at + length - atomic_load_explicit(&ring->read, memory_order_acquire) > RING)
        return 0;
    memcpy(ring->bytes + place, from, length);
    atomic_store_explicit(&ring->written, at + length, memory_order_release);
    return length;
}

static size_t get_some(unsigned char *into, size_t left)
{
    struct ring *ring = &shared->rings[1 - rank];
    uint64_t at = atomic_load_explicit(&ring->read, memory_order_relaxed);
    size_t there = atomic_load_explicit(&ring->written, memory_order_acquire) - at;
    size_t place = at % RING, length = least(least(least(left, CHUNK), RING - place), there);
    memcpy(into, ring->bytes + place, length);
    atomic_store_explicit(&ring->read, at + length, memory_order_release);
    return length;
}

static void exchange(const unsigned char *from, size_t sent, unsigned char *into, size_t received)
{
    while (sent || received) {
        size_t put = sent ? put_some(from, sent) : 0, got = received ? get_some(into, received) : 0;
        from += put, sent -= put, into += got, received -= got;
        if (!put && !got)
            relax();
    }
}

static void put(const unsigned char *from, size_t length) { exchange(from, length, NULL, 0); }
static void get(unsigned char *into, size_t length) { exchange(NULL, 0, into, length); }

/* ---- all ranks ---- */

static void wait_for(struct word *word)
{
    while (atomic_load_explicit(&word->turn, memory_order_acquire) < turn)
        relax();
}

static double combined(double mine, int is_sum)
{
    struct word *answer = &shared->words[size];
    turn++;
    if (rank == 0) {
        for (int from = 1; from < size; from++) {
            struct word *word = &shared->words[from];
            wait_for(word);
            mine = is_sum ? mine + word->number : mine > word->number ? mine : word->number;
        }
        answer->number = mine;
        atomic_store_explicit(&answer->turn, turn, memory_order_release);
        return mine;
    }
    shared->words[rank].number = mine;
    atomic_store_explicit(&shared->words[rank].turn, turn, memory_order_release);
    wait_for(answer);
    return answer->number;
}

static void meet(void) { combined(0, 1); }
static double largest(double mine) { return combined(mine, 0); }
static void give_up(void) { _exit(1); }

static int is_offered(const struct test *test)
{
    return test->operation <= BARRIER || (test->operation == ALLREDUCE && test->bytes == 8);
}

static void iterate(const struct test *test, int iteration)
{
    size_t bytes = (size_t)test->bytes;
    double *numbers = (double *)in;
    (void)iteration;
    switch (test->operation) {
    case PINGPONG:
        if (rank == 0)
            put(out, bytes), get(in, bytes);
        else
            get(in, bytes), put(in, bytes);
        break;
    case ONE_WAY:
        for (int at = 0; at < test->window; at++) {
            size_t place = (size_t)at * bytes;
            rank == 0 ? put(out + place, bytes) : get(in + place, bytes);
        }
        rank == 0 ? get(in, 8) : put(out, 8);
        break;
    case EXCHANGE:
        exchange(out, bytes, in, bytes);
        break;
    case ITERATION:
        exchange(out, bytes, in, bytes);
        for (int at = 0; at < SUMS; at++)
            sums[at] = combined(sums[at], 1);
        break;
    case BARRIER:
        meet();
        break;
    case ALLREDUCE:
        numbers[0] = combined(numbers[0], 1);
        break;
    default:
        break;
    }
}

/* Two that spin on one core would wait for whole time slices. */
static void take_core(void)
{
    cpu_set_t all, own;
    int at = 0;
    if (sched_getaffinity(0, sizeof all, &all) || CPU_COUNT(&all) < size)
        return;
    for (int left = rank; !CPU_ISSET(at, &all) || left--;)
        at++;
    CPU_ZERO(&own);
    CPU_SET(at, &own);
    has_core = !sched_setaffinity(0, sizeof own, &own);
}

int main(int argc, char **argv)
{
    size = argc > 4 ? atoi(argv[2]) : 0;
    if (argc < 5 || strcmp(argv[1], "-n") || strcmp(argv[3], "-t") || size < 2 || size > RANKS) {
        fprintf(stderr, "raw_memory -n RANKS -t SECONDS [NAME | NAME:BYTES]..., of 2 to %d ranks\n", RANKS);
        return 2;
    }
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (shared == MAP_FAILED) {
        perror("mmap");
        return 1;
    }
    /* The ranks above 0 are children and end with it. */
    for (int child = 1; child < size && rank == 0; child++) {
        pid_t started = fork();
        if (started < 0) {
            perror("fork");
            return 1;
        }
        if (started == 0) {
            rank = child;
            prctl(PR_SET_PDEATHSIG, SIGKILL);
        }
    }
    take_core();
    all_tests(atof(argv[4]), argc - 5, argv + 5);
    if (rank != 0)
        _exit(0);
    int failed = 0, status;
    while (wait(&status) > 0)
        failed |= status;
    return failed != 0;
}
