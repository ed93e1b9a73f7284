/* The tests of ft_benches::messages in C: what is timed, whether answers are right, and the time. A program that includes this
 * says how its ranks do them (the functions declared below) and calls all_tests().
 *
 * Prints one line a test: test,ranks,bytes,value,unit,p10,p90,batches,iterations. Batches are timed as
 * benches/src/messages/batches.rs says; every answer is checked before it is timed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WINDOW = 4, BURST = 64, SUMS = 3, BATCHES = 21, FEWEST = 5, LIMIT = 1 << 20 };
#define KIB (1 << 10)
#define MIB (1 << 20)

enum operation { PINGPONG, ONE_WAY, EXCHANGE, ITERATION, BARRIER, BCAST, ALLREDUCE, ALLTOALL, ALLGATHER };

struct test {
    const char *name;
    int bytes;
    enum operation operation;
    int window; /* messages under way at once */
    const char *unit;
    double factor; /* of microseconds; or per second and byte, or message */
};

static int rank, size;
/* What the operations work on; enough for the largest. */
static unsigned char *out, *in;
static double sums[SUMS];

/* ---- what a program has of its own ---- */

/* Does a test once. */
static void iterate(const struct test *test, int iteration);
/* Whether it can. */
static int is_offered(const struct test *test);
/* Returns when all ranks have called. */
static void meet(void);
/* The largest number of all ranks. */
static double largest(double mine);
/* Ends the job. */
static void give_up(void);

/* ---- the tests ---- */

static const struct test TESTS[] = {
    {"latency", 8, PINGPONG, 1, "us", 0.5},
    {"latency", KIB, PINGPONG, 1, "us", 0.5},
    {"pingpong", 64 * KIB, PINGPONG, 1, "GB/s", 2},
    {"pingpong", MIB, PINGPONG, 1, "GB/s", 2},
    {"pingpong", 16 * MIB, PINGPONG, 1, "GB/s", 2},
    {"oneway", KIB, ONE_WAY, BURST, "GB/s", BURST},
    {"oneway", 64 * KIB, ONE_WAY, BURST, "GB/s", BURST},
    {"oneway", MIB, ONE_WAY, WINDOW, "GB/s", WINDOW},
    {"oneway", 16 * MIB, ONE_WAY, WINDOW, "GB/s", WINDOW},
    {"exchange", MIB, EXCHANGE, 1, "GB/s", 1},
    {"exchange", 16 * MIB, EXCHANGE, 1, "GB/s", 1},
    {"rate", 8, ONE_WAY, BURST, "Mmsg/s", BURST},
    {"iteration", KIB, ITERATION, 1, "us", 1},
    {"barrier", 0, BARRIER, 1, "us", 1},
    {"bcast", 8, BCAST, 1, "us", 1},
    {"bcast", 64 * KIB, BCAST, 1, "us", 1},
    {"bcast", MIB, BCAST, 1, "us", 1},
    {"allreduce", 8, ALLREDUCE, 1, "us", 1},
    {"allreduce", 64 * KIB, ALLREDUCE, 1, "us", 1},
    {"allreduce", 8 * MIB, ALLREDUCE, 1, "us", 1},
    {"alltoall", 8, ALLTOALL, 1, "us", 1},
    {"alltoall", 64 * KIB, ALLTOALL, 1, "us", 1},
    {"allgather", 8, ALLGATHER, 1, "us", 1},
    {"allgather", 64 * KIB, ALLGATHER, 1, "us", 1},
    {"allgather", MIB, ALLGATHER, 1, "us", 1},
};
enum { COUNT = sizeof TESTS / sizeof *TESTS };

static int is_chosen(const struct test *test, int words, char **word)
{
    char exact[64];
    if ((size != 2 && test->operation < BARRIER) || !is_offered(test))
        return 0;
    snprintf(exact, sizeof exact, "%s:%d", test->name, test->bytes);
    for (int at = 0; at < words; at++)
        if (!strcmp(word[at], test->name) || !strcmp(word[at], exact))
            return 1;
    return words == 0;
}

/* Bytes of each buffer. */
static size_t room_of(const struct test *test)
{
    size_t messages = (size_t)(test->operation < BARRIER ? test->window : size);
    return messages * (size_t)test->bytes + 8;
}

/* ---- whether the answer is right, after one iteration ---- */

static unsigned char byte_of(int from, size_t at) { return (unsigned char)(at * 7 + (size_t)from * 3 + 1); }
static double number_of(int from, size_t at) { return from + 1 + (double)(at % 5); }

static void fill(unsigned char *into, int from, size_t length)
{
    for (size_t at = 0; at < length; at++)
        into[at] = byte_of(from, at);
}

static int is_from(const unsigned char *bytes, int from, size_t start, size_t length)
{
    for (size_t at = 0; at < length; at++)
        if (bytes[at] != byte_of(from, start + at))
            return 0;
    return 1;
}

static int are_sums(const double *numbers, size_t count)
{
    for (size_t at = 0; at < count; at++) {
        double sum = 0;
        for (int from = 0; from < size; from++)
            sum += number_of(from, at);
        if (numbers[at] != sum)
            return 0;
    }
    return 1;
}

static int is_right(const struct test *test)
{
    size_t bytes = (size_t)test->bytes;
    int all = 1;
    switch (test->operation) {
    case PINGPONG:
    case BCAST:
        return is_from(in, 0, 0, bytes);
    case ONE_WAY:
        return rank == 0 || is_from(in, 0, 0, (size_t)test->window * bytes);
    case EXCHANGE:
        return is_from(in, 1 - rank, 0, bytes);
    case ITERATION:
        return is_from(in, 1 - rank, 0, bytes) && are_sums(sums, SUMS);
    case ALLREDUCE:
        return are_sums((const double *)in, bytes / 8);
    case ALLTOALL:
        for (int from = 0; from < size; from++)
            all &= is_from(in + (size_t)from * bytes, from, (size_t)rank * bytes, bytes);
        return all;
    case ALLGATHER:
        for (int from = 0; from < size; from++)
            all &= is_from(in + (size_t)from * bytes, from, 0, bytes);
        return all;
    case BARRIER:
        break;
    }
    return 1;
}

static void check(const struct test *test)
{
    size_t bytes = (size_t)test->bytes;
    fill(out, rank, room_of(test));
    memset(in, 0, room_of(test));
    if (test->operation == BCAST && rank == 0)
        fill(in, 0, bytes);
    if (test->operation == ALLREDUCE)
        for (size_t at = 0; at < bytes / 8; at++)
            ((double *)in)[at] = number_of(rank, at);
    for (size_t at = 0; at < SUMS; at++)
        sums[at] = number_of(rank, at);
    iterate(test, 0);
    if (!is_right(test)) {
        fprintf(stderr, "%s:%d: rank %d has another answer\n", test->name, test->bytes, rank);
        give_up();
    }
    /* Sums of sums would not stay finite. */
    memset(in, 0, room_of(test));
    memset(sums, 0, sizeof sums);
}

/* ---- the time ---- */

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* Seconds an iteration of the slowest rank. */
static double batch(const struct test *test, int iterations)
{
    meet();
    double start = now();
    for (int iteration = 0; iteration < iterations; iteration++)
        iterate(test, iteration);
    return largest(now() - start) / iterations;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double value_of(const struct test *test, double seconds)
{
    if (!strcmp(test->unit, "us"))
        return seconds * test->factor * 1e6;
    if (!strcmp(test->unit, "GB/s"))
        return test->factor * test->bytes / seconds * 1e-9;
    return test->factor / seconds * 1e-6;
}

static void measure(const struct test *test, double time_s)
{
    double share_s = time_s / BATCHES;
    int iterations = 1;
    for (;;) {
        double each_s = batch(test, iterations);
        if (each_s * iterations > share_s / 2)
            break;
        double wanted = share_s / (each_s > 1e-9 ? each_s : 1e-9);
        int next = wanted < 4.0 * iterations ? (int)wanted : 4 * iterations;
        next = next < LIMIT ? next : LIMIT;
        if (next <= iterations)
            break;
        iterations = next;
    }
    double each_s[BATCHES], spent_s = 0;
    int batches = 0;
    while (batches < BATCHES && (batches < FEWEST || spent_s < 3 * time_s)) {
        each_s[batches] = batch(test, iterations);
        spent_s += each_s[batches++] * iterations;
    }
    if (rank != 0)
        return;
    qsort(each_s, (size_t)batches, sizeof *each_s, by_size);
    int tenth = batches / 10;
    double quick = value_of(test, each_s[tenth]), slow = value_of(test, each_s[batches - 1 - tenth]);
    printf("%s,%d,%d,%.6f,%s,%.6f,%.6f,%d,%d\n", test->name, size, test->bytes, value_of(test, each_s[batches / 2]),
           test->unit, quick < slow ? quick : slow, quick < slow ? slow : quick, batches, iterations);
    fflush(stdout);
}

/* Those that the words name, NAME or NAME:BYTES, or all. */
static void all_tests(double time_s, int words, char **word)
{
    size_t room = 0;
    for (int at = 0; at < COUNT; at++)
        if (is_chosen(&TESTS[at], words, word))
            room = room_of(&TESTS[at]) > room ? room_of(&TESTS[at]) : room;
    /* A multiple of the alignment. */
    room = (room + 4096) / 4096 * 4096;
    out = aligned_alloc(4096, room);
    in = aligned_alloc(4096, room);
    if (!out || !in)
        give_up();
    for (int at = 0; at < COUNT; at++)
        if (is_chosen(&TESTS[at], words, word)) {
            check(&TESTS[at]);
            measure(&TESTS[at], time_s);
        }
    free(out);
    free(in);
}
