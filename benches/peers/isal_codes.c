/* What examples/codes.rs does, with Intel's ISA-L: cc -O3 isal_codes.c -lisal -o isal_codes && ./isal_codes K M KIB
   Prints a name and CPU seconds a call, a line each, and a sum over the redundant blocks. */
#include <isa-l.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SAMPLES = 9, SHARDS_MAX = 32 };
static const double SAMPLE_S = 0.004;

static int k, m, bytes, lost;
static unsigned char matrix[SHARDS_MAX * SHARDS_MAX], tables[32 * SHARDS_MAX * SHARDS_MAX];
static unsigned char *stripe[SHARDS_MAX], *made[2];

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *name, void (*call)(void)) {
    double samples[SAMPLES], start, once;
    call();
    start = now();
    call();
    once = now() - start;
    int calls = once < SAMPLE_S ? (int)(SAMPLE_S / (once > 1e-8 ? once : 1e-8)) + 1 : 1;
    for (int s = 0; s < SAMPLES; s++) {
        start = now();
        for (int i = 0; i < calls; i++) call();
        samples[s] = (now() - start) / calls;
    }
    qsort(samples, SAMPLES, sizeof *samples, ascending);
    printf("%s %.9e\n", name, samples[SAMPLES / 2]);
}

static unsigned char *memory(uint64_t seed) {
    unsigned char *block = aligned_alloc(4096, ((size_t)bytes + 4095) / 4096 * 4096);
    if (!block) exit(1);
    for (int i = 0; i < bytes; i += 8) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        uint64_t word = seed ^ seed >> 29;
        memcpy(block + i, &word, 8);
    }
    return block;
}

static void encode(void) { ec_encode_data(bytes, k, m, tables, stripe, stripe + k); }

static void xor(void) {
    if (xor_gen(k + 1, bytes, (void **)stripe)) exit(1);
}

static void rebuild(void) {
    unsigned char rows[SHARDS_MAX * SHARDS_MAX], inverse[SHARDS_MAX * SHARDS_MAX];
    unsigned char rebuilding[32 * SHARDS_MAX * 2];
    memcpy(rows, matrix + lost * k, (size_t)k * k);
    if (gf_invert_matrix(rows, inverse, k)) exit(1);
    ec_init_tables(k, lost, inverse, rebuilding);
    ec_encode_data(bytes, k, lost, rebuilding, stripe + lost, made);
}

int main(int count, char **words) {
    if (count != 4) return 2;
    k = atoi(words[1]);
    m = atoi(words[2]);
    bytes = atoi(words[3]) << 10;
    if (k < 2 || m < 1 || k + m > SHARDS_MAX) return 2;
    for (int i = 0; i < k + m; i++) stripe[i] = memory(i);
    for (int i = 0; i < 2; i++) made[i] = memory(100 + i);
    gf_gen_cauchy1_matrix(matrix, k + m, k);
    ec_init_tables(k, m, matrix + k * k, tables);
    measure("encode", encode);
    uint64_t sum = 0;
    for (int j = k; j < k + m; j++)
        for (int i = 0; i < bytes; i += 8) {
            uint64_t word;
            memcpy(&word, stripe[j] + i, 8);
            sum = (sum ^ word) * UINT64_C(0x100000001b3);
        }
    printf("sum %016llx\n", (unsigned long long)sum);
    for (lost = 1; lost <= 2 && lost <= m; lost++) {
        measure(lost == 1 ? "rebuild1" : "rebuild2", rebuild);
        for (int i = 0; i < lost; i++)
            if (memcmp(made[i], stripe[i], bytes)) return 1;
    }
    if (m == 1) measure("xor", xor);
    return 0;
}
