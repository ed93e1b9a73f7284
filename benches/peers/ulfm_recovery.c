/* What ranks do by hand with ULFM (MPI extension of Open MPI 5) to go on after a death: `ftrun load` is the same with
 * ft-checkpoint, and benches/src/ulfm compares the two.
 *
 *     mpicc -O3 -o ulfm_recovery ulfm_recovery.c
 *     mpiexec --with-ft ulfm -n N ./ulfm_recovery FILE rebuild|shrink MIB ITERATIONS EVERY KILL_AT SLICE_KIB [VICTIM]...
 *     mpiexec --with-ft ulfm -n N ./ulfm_recovery FILE agree
 *
 * Each rank has MIB of state; an iteration changes a slice of SLICE_KIB of it by an allreduce. Every so many iterations a rank keeps a
 * copy of its state and sends one to the next rank. The victims kill themselves in iteration KILL_AT. The others hear of it
 * from the allreduce, revoke, shrink and, in `rebuild`, start as many processes as are gone, give them the old ranks,
 * bring state and copies back, and do again what was done since the last copy. No two victims may be neighbors.
 *
 * Appends lines `WHAT,RANK,VALUE` to FILE, which is there for the dead and for those that hang in MPI_Finalize: killed,
 * known, shrunk, merged, whole and resumed are seconds of CLOCK_MONOTONIC, answer is a hash over all states (in `shrink` the
 * number of ranks), agree and allreduce are seconds a call. */
#include <fcntl.h>
#include <mpi.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* It takes words of the other one. */
#include <mpi-ext.h>

enum { MOST_LOST = 16, BATCHES = 21, CALLS = 50 };
enum { COPY = 1, SEAT, RESTORE, PROTECT };

static int file, rank = -1, size, is_new;
static MPI_Comm world;
/* Words of the state, of the slice that an iteration changes, and two generations of copies: the last one has to serve until all ranks have the next. */
static size_t words, slice;
static uint64_t *state, *own[2], *previous[2];
static int copied_at[2] = {-1, -1}, newest;
static int iterations, every, kill_at, is_victim;
/* When this rank was so far; 0 before. */
static double known, shrunk, merged, whole, resumed;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void say(const char *what, const char *value)
{
    char line[128];
    int length = snprintf(line, sizeof line, "%s,%d,%s\n", what, rank, value);
    /* One call, so that lines of others do not get into it. */
    if (write(file, line, (size_t)length) != length)
        perror("ulfm_recovery: write");
}

static void say_time(const char *what, double seconds)
{
    char number[32];
    snprintf(number, sizeof number, "%.9f", seconds);
    say(what, number);
}

/* An error where none is survived. */
static void must(int error, const char *what)
{
    if (error == MPI_SUCCESS)
        return;
    char text[MPI_MAX_ERROR_STRING];
    int length;
    MPI_Error_string(error, text, &length);
    fprintf(stderr, "ulfm_recovery: rank %d: %s: %s\n", rank, what, text);
    _exit(3);
}

static uint64_t *memory(void)
{
    uint64_t *bytes = malloc(8 * words);
    if (bytes == NULL) {
        fprintf(stderr, "ulfm_recovery: no memory\n");
        _exit(3);
    }
    /* The system gives pages when they are touched: those of survivors before anything is timed, those of a new process
     * by what it receives. */
    return is_new ? bytes : memset(bytes, 1, 8 * words);
}

static void die(void)
{
    say_time("killed", now());
    raise(SIGKILL);
}

/* The answer comes last: who has said it has said all. */
static void say_all(uint64_t answer)
{
    const char *names[] = {"known", "shrunk", "merged", "whole", "resumed"};
    double times[] = {known, shrunk, merged, whole, resumed};
    char text[32];
    for (int at = 0; at < 5; at++)
        if (times[at] != 0)
            say_time(names[at], times[at]);
    snprintf(text, sizeof text, "%016llx", (unsigned long long)answer);
    say("answer", text);
}

/* ---- work ---- */

static int copy(int iteration)
{
    int slot = 1 - newest, next = (rank + 1) % size, last = (rank + size - 1) % size;
    memcpy(own[slot], state, 8 * words);
    int error = MPI_Sendrecv(state, (int)words, MPI_UINT64_T, next, COPY, previous[slot], (int)words, MPI_UINT64_T,
                             last, COPY, world, MPI_STATUS_IGNORE);
    if (error == MPI_SUCCESS)
        error = MPI_Barrier(world);
    if (error == MPI_SUCCESS)
        copied_at[slot] = iteration, newest = slot;
    return error;
}

static int iterate(int iteration)
{
    size_t length = words < slice ? words : slice, start = (size_t)iteration * slice % words;
    uint64_t part = 0, all = 0;
    if (start + length > words)
        start = words - length;
    for (size_t at = start; at < start + length; at++)
        part += state[at];
    int error = MPI_Allreduce(&part, &all, 1, MPI_UINT64_T, MPI_SUM, world);
    for (size_t at = start; error == MPI_SUCCESS && at < start + length; at++)
        state[at] = state[at] * 6364136223846793005u + all + (uint64_t)rank;
    return error;
}

/* From `*iteration` on, to the end or to an error. */
static int work(int *iteration)
{
    for (; *iteration < iterations; ++*iteration) {
        int error = MPI_SUCCESS;
        if (*iteration % every == 0 && copied_at[newest] != *iteration)
            error = copy(*iteration);
        if (is_victim && *iteration == kill_at)
            die();
        if (error == MPI_SUCCESS)
            error = iterate(*iteration);
        if (error != MPI_SUCCESS)
            return error;
        if (whole != 0 && resumed == 0)
            resumed = now();
    }
    return MPI_SUCCESS;
}

static uint64_t answer(void)
{
    uint64_t hash = 0, all = 0;
    for (size_t at = 0; at < words; at++)
        hash = hash * 31 + state[at];
    /* A sum of hashes does not tell ranks that have changed places. */
    hash = (hash ^ hash >> 29) * (2 * (uint64_t)rank + 1);
    must(MPI_Allreduce(&hash, &all, 1, MPI_UINT64_T, MPI_SUM, world), "the answer");
    return all;
}

/* ---- recovery ---- */

/* Survivors: as many new processes as are gone, and the ranks that they have to take. */
static MPI_Comm start_processes(MPI_Comm survivors, char **argv)
{
    int left, me, errors[MOST_LOST];
    MPI_Comm others, together;
    MPI_Group before, now_left, gone;
    MPI_Comm_size(survivors, &left);
    MPI_Comm_rank(survivors, &me);
    must(MPI_Comm_spawn(argv[0], argv + 1, size - left, MPI_INFO_NULL, 0, survivors, &others, errors), "spawn");
    must(MPI_Intercomm_merge(others, 0, &together), "merge");
    MPI_Comm_group(world, &before);
    MPI_Comm_group(survivors, &now_left);
    MPI_Group_difference(before, now_left, &gone);
    for (int at = 0; me == 0 && at < size - left; at++) {
        int seat[2] = {-1, size};
        MPI_Group_translate_ranks(gone, 1, &at, before, &seat[0]);
        must(MPI_Send(seat, 2, MPI_INT, at, SEAT, others), "send a seat");
    }
    return together;
}

/* New processes: which rank is it? */
static MPI_Comm join(MPI_Comm parent)
{
    MPI_Comm together;
    int seat[2];
    must(MPI_Intercomm_merge(parent, 1, &together), "merge");
    must(MPI_Recv(seat, 2, MPI_INT, 0, SEAT, parent, MPI_STATUS_IGNORE), "receive a seat");
    rank = seat[0], size = seat[1];
    return together;
}

/* The old ranks again. */
static void reorder(MPI_Comm together)
{
    int flag = 1;
    MPI_Comm_set_errhandler(together, MPI_ERRORS_RETURN);
    must(MPI_Comm_split(together, 0, rank, &world), "split");
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    must(MPIX_Comm_agree(world, &flag), "agree");
}

/* Everyone goes back to the last copy that all survivors have; the new ones get theirs from the next rank, and the copy
 * that they have to keep from the one before. Gives the iteration to go on with. */
static int restore(void)
{
    int next = (rank + 1) % size, last = (rank + size - 1) % size;
    int have = is_new ? INT32_MAX : copied_at[newest], line;
    int *are_new = malloc(sizeof *are_new * (size_t)size);
    must(MPI_Allreduce(&have, &line, 1, MPI_INT, MPI_MIN, world), "agree on a copy");
    must(MPI_Allgather(&is_new, 1, MPI_INT, are_new, 1, MPI_INT, world), "who is new");
    if (!is_new && copied_at[newest] != line)
        newest = 1 - newest;
    copied_at[newest] = line, copied_at[1 - newest] = -1;
    if (is_new)
        must(MPI_Recv(own[newest], (int)words, MPI_UINT64_T, next, RESTORE, world, MPI_STATUS_IGNORE), "restore");
    else if (are_new[last])
        must(MPI_Send(previous[newest], (int)words, MPI_UINT64_T, last, RESTORE, world), "restore");
    memcpy(state, own[newest], 8 * words);
    if (is_new)
        must(MPI_Recv(previous[newest], (int)words, MPI_UINT64_T, last, PROTECT, world, MPI_STATUS_IGNORE), "protect");
    else if (are_new[next])
        must(MPI_Send(own[newest], (int)words, MPI_UINT64_T, next, PROTECT, world), "protect");
    must(MPI_Barrier(world), "all are whole");
    free(are_new);
    return line;
}

/* Gives the iteration to go on with. */
static int rebuild(MPI_Comm together)
{
    merged = now();
    reorder(together);
    int line = restore();
    whole = now();
    return line;
}

static MPI_Comm shrink(void)
{
    MPI_Comm survivors;
    MPIX_Comm_revoke(world);
    must(MPIX_Comm_shrink(world, &survivors), "shrink");
    MPI_Comm_set_errhandler(survivors, MPI_ERRORS_RETURN);
    shrunk = now();
    return survivors;
}

/* In `shrink` the survivors are content with each other. Gives their number. */
static int go_on(MPI_Comm survivors)
{
    int one = 1, all = 0;
    must(MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, survivors), "the first allreduce");
    resumed = now();
    return all;
}

/* ---- agreement on a communicator of the living ---- */

static int ascending(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* The median batch of the slowest rank. */
static double seconds_a_call(int is_agree)
{
    double batches[BATCHES];
    for (int batch = -1; batch < BATCHES; batch++) { /* the first is not timed */
        must(MPI_Barrier(world), "barrier");
        double start = now();
        for (int call = 0; call < CALLS; call++) {
            int flag = 1;
            uint64_t one = 1, all = 0;
            if (is_agree)
                must(MPIX_Comm_agree(world, &flag), "agree");
            else
                must(MPI_Allreduce(&one, &all, 1, MPI_UINT64_T, MPI_SUM, world), "allreduce");
            if (flag != 1 || (!is_agree && all != (uint64_t)size))
                must(MPI_ERR_OTHER, "a wrong answer");
        }
        double mine = (now() - start) / CALLS, slowest = 0;
        must(MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, world), "the slowest");
        if (batch >= 0)
            batches[batch] = slowest;
    }
    qsort(batches, BATCHES, sizeof *batches, ascending);
    return batches[BATCHES / 2];
}

static int agree(void)
{
    double allreduce = seconds_a_call(0), agreement = seconds_a_call(1);
    say_time("allreduce", allreduce);
    say_time("agree", agreement);
    say_all(0);
    MPI_Finalize();
    return 0;
}

static int recover(int argc, char **argv, MPI_Comm parent)
{
    int iteration = 0, living = 0, error, shrinks = strcmp(argv[2], "shrink") == 0;
    words = (size_t)atol(argv[3]) << 17;
    iterations = atoi(argv[4]), every = atoi(argv[5]), kill_at = atoi(argv[6]), slice = (size_t)atol(argv[7]) << 7;
    for (int at = 8; at < argc; at++)
        is_victim |= !is_new && atoi(argv[at]) == rank;
    state = memory();
    for (int slot = 0; slot < 2; slot++)
        own[slot] = memory(), previous[slot] = memory();
    for (size_t at = 0; !is_new && at < words; at++)
        state[at] = (uint64_t)rank * 1000003 + at;

    if (is_new)
        iteration = rebuild(join(parent));
    while ((error = work(&iteration)) != MPI_SUCCESS) {
        /* It heard of the other victim before its own time had come. */
        if (is_victim)
            die();
        if (whole != 0)
            must(error, "one more rank is lost");
        known = now();
        MPI_Comm survivors = shrink();
        if (shrinks) {
            living = go_on(survivors);
            break;
        }
        iteration = rebuild(start_processes(survivors, argv));
    }
    say_all(living != 0 ? (uint64_t)living : answer());
    MPI_Finalize();
    return 0;
}

int main(int argc, char **argv)
{
    MPI_Comm parent;
    MPI_Init(&argc, &argv);
    file = argc > 2 ? open(argv[1], O_WRONLY | O_APPEND) : -1;
    if (file < 0 || (argc < 8 && strcmp(argv[2], "agree") != 0)) {
        fprintf(stderr, "ulfm_recovery: FILE agree, or FILE rebuild|shrink MIB ITERATIONS EVERY KILL_AT SLICE_KIB [VICTIM]...\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    MPI_Comm_get_parent(&parent);
    is_new = parent != MPI_COMM_NULL;
    if (!is_new) {
        must(MPI_Comm_dup(MPI_COMM_WORLD, &world), "dup");
        MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
        MPI_Comm_rank(world, &rank);
        MPI_Comm_size(world, &size);
    }
    return strcmp(argv[2], "agree") == 0 ? agree() : recover(argc, argv, parent);
}
