/* The tests of ft_benches::messages with MPI; examples/messages.rs is the same with ft-comm.
 *
 *     mpicc -O3 -o mpi_messages mpi_messages.c
 *     mpiexec -n 2 ./mpi_messages [-t SECONDS] [NAME | NAME:BYTES]...
 *
 * Prints one line a test: test,ranks,bytes,value,unit,p10,p90,batches,iterations. Batches are timed as
 * benches/src/messages/batches.rs says; every answer is checked before it is timed. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WINDOW = 4, BURST = 64, BATCHES = 21, FEWEST = 5, LIMIT = 1 << 20 };
#define KIB (1 << 10)
#define MIB (1 << 20)

static int rank, size;
static double time_s = 0.1;
/* What the operations work on; enough for the largest. */
static unsigned char *out, *in;

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

/* ---- what is done in one iteration ---- */

static void pingpong(int bytes, int iteration)
{
    (void)iteration;
    if (rank == 0) {
        MPI_Send(out, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(in, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(in, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

static void one_way(int bytes, int messages)
{
    MPI_Request requests[BURST];
    char answer[8] = {0};
    for (int at = 0; at < messages; at++) {
        size_t place = (size_t)at * (size_t)bytes;
        if (rank == 0)
            MPI_Isend(out + place, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, &requests[at]);
        else
            MPI_Irecv(in + place, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, &requests[at]);
    }
    MPI_Waitall(messages, requests, MPI_STATUSES_IGNORE);
    if (rank == 0)
        MPI_Recv(answer, 8, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        MPI_Send(answer, 8, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
}

static void window(int bytes, int iteration) { (void)iteration, one_way(bytes, WINDOW); }
static void burst(int bytes, int iteration) { (void)iteration, one_way(bytes, BURST); }

static void exchange(int bytes, int iteration)
{
    (void)iteration;
    MPI_Sendrecv(out, bytes, MPI_BYTE, 1 - rank, 0, in, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static void barrier(int bytes, int iteration) { (void)bytes, (void)iteration, MPI_Barrier(MPI_COMM_WORLD); }

static void bcast(int bytes, int iteration) { MPI_Bcast(in, bytes, MPI_BYTE, iteration % size, MPI_COMM_WORLD); }

/* In place, which saves the libraries a copy. */
static void allreduce(int bytes, int iteration)
{
    (void)iteration;
    MPI_Allreduce(MPI_IN_PLACE, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void alltoall(int bytes, int iteration)
{
    (void)iteration;
    MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

static void allgather(int bytes, int iteration)
{
    (void)iteration;
    MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
}

/* ---- whether the answer is right, after one iteration ---- */

static int got_first(size_t bytes) { return is_from(in, 0, 0, bytes); }
static int got_window(size_t bytes) { return rank == 0 || is_from(in, 0, 0, WINDOW * bytes); }
static int got_burst(size_t bytes) { return rank == 0 || is_from(in, 0, 0, BURST * bytes); }
static int got_other(size_t bytes) { return is_from(in, 1 - rank, 0, bytes); }
static int got_nothing(size_t bytes) { return bytes == 0; }

static int got_sums(size_t bytes)
{
    const double *sums = (const double *)in;
    for (size_t at = 0; at < bytes / 8; at++) {
        double sum = 0;
        for (int from = 0; from < size; from++)
            sum += number_of(from, at);
        if (sums[at] != sum)
            return 0;
    }
    return 1;
}

static int got_parts(size_t bytes)
{
    for (int from = 0; from < size; from++)
        if (!is_from(in + (size_t)from * bytes, from, (size_t)rank * bytes, bytes))
            return 0;
    return 1;
}

static int got_all(size_t bytes)
{
    for (int from = 0; from < size; from++)
        if (!is_from(in + (size_t)from * bytes, from, 0, bytes))
            return 0;
    return 1;
}

/* ---- the tests ---- */

struct test {
    const char *name;
    int bytes;
    int is_of_two;
    void (*iterate)(int bytes, int iteration);
    int (*is_right)(size_t bytes);
    const char *unit;
    double factor; /* of microseconds; or per second and byte, or message */
};

static const struct test TESTS[] = {
    {"latency", 8, 1, pingpong, got_first, "us", 0.5},
    {"latency", KIB, 1, pingpong, got_first, "us", 0.5},
    {"pingpong", 64 * KIB, 1, pingpong, got_first, "GB/s", 2},
    {"pingpong", MIB, 1, pingpong, got_first, "GB/s", 2},
    {"pingpong", 16 * MIB, 1, pingpong, got_first, "GB/s", 2},
    {"oneway", MIB, 1, window, got_window, "GB/s", WINDOW},
    {"oneway", 16 * MIB, 1, window, got_window, "GB/s", WINDOW},
    {"exchange", MIB, 1, exchange, got_other, "GB/s", 1},
    {"exchange", 16 * MIB, 1, exchange, got_other, "GB/s", 1},
    {"rate", 8, 1, burst, got_burst, "Mmsg/s", BURST},
    {"barrier", 0, 0, barrier, got_nothing, "us", 1},
    {"bcast", 8, 0, bcast, got_first, "us", 1},
    {"bcast", 64 * KIB, 0, bcast, got_first, "us", 1},
    {"bcast", MIB, 0, bcast, got_first, "us", 1},
    {"allreduce", 8, 0, allreduce, got_sums, "us", 1},
    {"allreduce", 64 * KIB, 0, allreduce, got_sums, "us", 1},
    {"allreduce", 8 * MIB, 0, allreduce, got_sums, "us", 1},
    {"alltoall", 8, 0, alltoall, got_parts, "us", 1},
    {"alltoall", 64 * KIB, 0, alltoall, got_parts, "us", 1},
    {"allgather", 8, 0, allgather, got_all, "us", 1},
    {"allgather", 64 * KIB, 0, allgather, got_all, "us", 1},
    {"allgather", MIB, 0, allgather, got_all, "us", 1},
};
enum { COUNT = sizeof TESTS / sizeof *TESTS };

static int is_chosen(const struct test *test, int words, char **word)
{
    char exact[64];
    snprintf(exact, sizeof exact, "%s:%d", test->name, test->bytes);
    for (int at = 0; at < words; at++)
        if (!strcmp(word[at], test->name) || !strcmp(word[at], exact))
            return 1;
    return words == 0;
}

/* Bytes of each buffer. */
static size_t room_of(const struct test *test)
{
    size_t messages = test->iterate == window ? WINDOW : test->iterate == burst ? BURST : (size_t)size;
    return messages * (size_t)test->bytes + 8;
}

static void check(const struct test *test)
{
    size_t bytes = (size_t)test->bytes;
    fill(out, rank, room_of(test));
    memset(in, 0, room_of(test));
    if (test->iterate == bcast && rank == 0)
        fill(in, 0, bytes);
    if (test->iterate == allreduce)
        for (size_t at = 0; at < bytes / 8; at++)
            ((double *)in)[at] = number_of(rank, at);
    test->iterate(test->bytes, 0);
    if (!test->is_right(bytes)) {
        fprintf(stderr, "%s:%d: rank %d has another answer\n", test->name, test->bytes, rank);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    /* Sums of sums would not stay finite. */
    memset(in, 0, room_of(test));
}

/* ---- the time ---- */

/* Seconds an iteration of the slowest rank. */
static double batch(const struct test *test, int iterations)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int iteration = 0; iteration < iterations; iteration++)
        test->iterate(test->bytes, iteration);
    double slowest = MPI_Wtime() - start;
    MPI_Allreduce(MPI_IN_PLACE, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest / iterations;
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

static void measure(const struct test *test)
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

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int word = 1;
    if (argc > 2 && !strcmp(argv[1], "-t")) {
        time_s = atof(argv[2]);
        word = 3;
    }
    size_t room = 0;
    for (int at = 0; at < COUNT; at++)
        if ((size == 2 || !TESTS[at].is_of_two) && is_chosen(&TESTS[at], argc - word, argv + word))
            room = room_of(&TESTS[at]) > room ? room_of(&TESTS[at]) : room;
    /* A multiple of the alignment. */
    room = (room + 4095) / 4096 * 4096;
    out = aligned_alloc(4096, room ? room : 4096);
    in = aligned_alloc(4096, room ? room : 4096);
    if (!out || !in)
        MPI_Abort(MPI_COMM_WORLD, 1);
    for (int at = 0; at < COUNT; at++)
        if ((size == 2 || !TESTS[at].is_of_two) && is_chosen(&TESTS[at], argc - word, argv + word)) {
            check(&TESTS[at]);
            measure(&TESTS[at]);
        }
    free(out);
    free(in);
    MPI_Finalize();
    return 0;
}
