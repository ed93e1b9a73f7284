/* A checkpoint in one shared file by MPI-IO: every rank writes its part, together, and the file is synchronized.
 *
 *     mpicc -O3 mpi_checkpoint.c -o mpi_checkpoint
 *     mpiexec -n 8 ./mpi_checkpoint FILE MIB REPEATS
 *
 * Rank 0 prints a line of JSON: the seconds from the first rank's start to the last rank's end of each checkpoint, from the
 * opening of the file to its closing, by the clock that all processes of a host share. One more goes before. Every word
 * of the states changes before each checkpoint, and the last one is read back and compared. The file is removed in between.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int rank, size;

static void check(int outcome, const char *what)
{
    if (outcome != MPI_SUCCESS) {
        char text[MPI_MAX_ERROR_STRING];
        int length;
        MPI_Error_string(outcome, text, &length);
        fprintf(stderr, "mpi_checkpoint: %s: %s\n", what, text);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static uint64_t now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

/* Word `at` of the state of this rank at checkpoint `number`. */
static uint64_t word(uint64_t at, uint64_t number)
{
    uint64_t mixed = (((uint64_t)(rank + 1) << 40 | number << 32) + at) * 0x9e3779b97f4a7c15u;
    return mixed ^ mixed >> 29;
}

static void save(const char *file, const uint64_t *state, size_t bytes)
{
    MPI_File handle;
    check(MPI_File_open(MPI_COMM_WORLD, file, MPI_MODE_CREATE | MPI_MODE_WRONLY, MPI_INFO_NULL, &handle), "open");
    check(MPI_File_write_at_all(handle, (MPI_Offset)(rank * bytes), state, (int)bytes, MPI_BYTE, MPI_STATUS_IGNORE),
          "write");
    check(MPI_File_sync(handle), "sync");
    check(MPI_File_close(&handle), "close");
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 4 || atoi(argv[2]) < 1 || atoi(argv[2]) > 1024 || atoi(argv[3]) < 1) {
        fprintf(stderr, "usage: mpi_checkpoint FILE MIB REPEATS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    const char *file = argv[1];
    size_t bytes = (size_t)atoi(argv[2]) << 20, words = bytes / sizeof(uint64_t);
    int repeats = atoi(argv[3]), wrong = 0, wrongs;
    uint64_t *state = malloc(bytes);
    double *seconds = malloc((size_t)repeats * sizeof(double));
    if (state == NULL || seconds == NULL) {
        fprintf(stderr, "mpi_checkpoint: no memory\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }

    for (int number = 0; number <= repeats; number++) {
        for (size_t at = 0; at < words; at++)
            state[at] = word(at, (uint64_t)number);
        MPI_Barrier(MPI_COMM_WORLD);
        uint64_t times[2], first, last;
        times[0] = now_ns();
        save(file, state, bytes);
        times[1] = now_ns();
        MPI_Reduce(&times[0], &first, 1, MPI_UINT64_T, MPI_MIN, 0, MPI_COMM_WORLD);
        MPI_Reduce(&times[1], &last, 1, MPI_UINT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
        if (rank == 0 && number > 0)
            seconds[number - 1] = (double)(last - first) * 1e-9;
        if (number == repeats) {
            MPI_File handle;
            check(MPI_File_open(MPI_COMM_WORLD, file, MPI_MODE_RDONLY, MPI_INFO_NULL, &handle), "open");
            for (size_t at = 0; at < words; at++)
                state[at] = 0;
            check(MPI_File_read_at_all(handle, (MPI_Offset)(rank * bytes), state, (int)bytes, MPI_BYTE,
                                       MPI_STATUS_IGNORE),
                  "read");
            check(MPI_File_close(&handle), "close");
            for (size_t at = 0; at < words; at++)
                wrong |= state[at] != word(at, (uint64_t)number);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (rank == 0)
            check(MPI_File_delete(file, MPI_INFO_NULL), "delete");
        MPI_Barrier(MPI_COMM_WORLD);
    }

    MPI_Reduce(&wrong, &wrongs, 1, MPI_INT, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0 && wrongs)
        fprintf(stderr, "mpi_checkpoint: the file holds other bytes than were written\n");
    if (rank == 0 && !wrongs) {
        printf("{\"ranks\":%d,\"mib\":%s,\"seconds\":[", size, argv[2]);
        for (int number = 0; number < repeats; number++)
            printf("%s%.9f", number > 0 ? "," : "", seconds[number]);
        printf("]}\n");
    }
    MPI_Finalize();
    return rank == 0 && wrongs ? 1 : 0;
}
