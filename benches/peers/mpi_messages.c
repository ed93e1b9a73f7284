/* The tests of messages.h with MPI; examples/messages.rs is the same with ft-comm.
 *
 *     mpicc -O3 -o mpi_messages mpi_messages.c
 *     mpiexec -n 2 ./mpi_messages [-t SECONDS] [NAME | NAME:BYTES]... */
#include <mpi.h>

#include "messages.h"

/* A halo of an iteration, planned once. */
static MPI_Request halo[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

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

static void solver_iteration(int bytes)
{
    if (halo[0] == MPI_REQUEST_NULL) {
        MPI_Recv_init(in, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &halo[0]);
        MPI_Send_init(out, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, &halo[1]);
    }
    MPI_Startall(2, halo);
    MPI_Waitall(2, halo, MPI_STATUSES_IGNORE);
    for (int at = 0; at < SUMS; at++)
        MPI_Allreduce(MPI_IN_PLACE, &sums[at], 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void iterate(const struct test *test, int iteration)
{
    int bytes = test->bytes;
    switch (test->operation) {
    case PINGPONG:
        if (rank == 0) {
            MPI_Send(out, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
            MPI_Recv(in, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(in, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(in, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        }
        break;
    case ONE_WAY:
        one_way(bytes, test->window);
        break;
    case EXCHANGE:
        MPI_Sendrecv(out, bytes, MPI_BYTE, 1 - rank, 0, in, bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        break;
    case ITERATION:
        solver_iteration(bytes);
        break;
    case BARRIER:
        MPI_Barrier(MPI_COMM_WORLD);
        break;
    case BCAST:
        MPI_Bcast(in, bytes, MPI_BYTE, iteration % size, MPI_COMM_WORLD);
        break;
    case ALLREDUCE: /* in place, which saves the libraries a copy */
        MPI_Allreduce(MPI_IN_PLACE, in, bytes / 8, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        break;
    case ALLTOALL:
        MPI_Alltoall(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
        break;
    case ALLGATHER:
        MPI_Allgather(out, bytes, MPI_BYTE, in, bytes, MPI_BYTE, MPI_COMM_WORLD);
        break;
    }
}

static int is_offered(const struct test *test)
{
    (void)test;
    return 1;
}

static void meet(void) { MPI_Barrier(MPI_COMM_WORLD); }

static double largest(double mine)
{
    MPI_Allreduce(MPI_IN_PLACE, &mine, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return mine;
}

static void give_up(void) { MPI_Abort(MPI_COMM_WORLD, 1); }

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int has_time = argc > 2 && !strcmp(argv[1], "-t");
    int first = has_time ? 3 : 1;
    all_tests(has_time ? atof(argv[2]) : 0.1, argc - first, argv + first);
    for (int at = 0; at < 2; at++)
        if (halo[at] != MPI_REQUEST_NULL)
            MPI_Request_free(&halo[at]);
    MPI_Finalize();
    return 0;
}
