/* Solvers of PETSc, timed as examples/solvers.rs times ours: `petsc_solvers TASK SYSTEM ITERATIONS REPEATS [PETSc's options]`.

   TASK      product (ITERATIONS products), iterate (ITERATIONS iterations), solve (to 1e-8, at most ITERATIONS)
   SYSTEM    poisson:N, poisson2:N, convection:N, convection2:N, or a Matrix Market file, which `gzip` unpacks

   Prints a name and a number a line: norm (of A x with x_i = 1 / (i + 0.3), by which sides can be seen to have the same matrix),
   product, iteration, setup, solve in seconds, of which the lines of several repeats follow each other, iterations, and residual,
   relative and true. */
#include <petscksp.h>
#include <stdio.h>
#include <string.h>

static PetscErrorCode reserve(Mat *a, PetscInt n, PetscInt width) {
  PetscFunctionBeginUser;
  PetscCall(MatCreateAIJ(PETSC_COMM_WORLD, PETSC_DECIDE, PETSC_DECIDE, n, n, width, NULL, width, NULL, a));
  PetscFunctionReturn(0);
}

static PetscErrorCode assemble(Mat a) {
  PetscFunctionBeginUser;
  PetscCall(MatAssemblyBegin(a, MAT_FINAL_ASSEMBLY));
  PetscCall(MatAssemblyEnd(a, MAT_FINAL_ASSEMBLY));
  PetscFunctionReturn(0);
}

/* Diffusion, and flow with a Peclet number, upwind, on the inner points of a square or cube. */
static PetscErrorCode grid(Mat *a, PetscInt m, int dimensions, double peclet) {
  const double wind[3] = {1.0, 0.5, 0.25};
  PetscInt shape[3] = {m, m, dimensions == 3 ? m : 1}, stride[3] = {1, m, m * m}, first, end;
  double below[3], above[3], diagonal = 0;
  PetscFunctionBeginUser;
  for (int d = 0; d < dimensions; d++) {
    below[d] = -1 - peclet * wind[d] / (shape[d] + 1.0);
    above[d] = -1;
    diagonal -= below[d] + above[d];
  }
  PetscCall(reserve(a, shape[0] * shape[1] * shape[2], 2 * dimensions + 1));
  PetscCall(MatGetOwnershipRange(*a, &first, &end));
  for (PetscInt row = first; row < end; row++) {
    PetscInt at[3] = {row % m, row / m % m, row / m / m}, cols[7], count = 0;
    PetscScalar vals[7];
    for (int d = dimensions - 1; d >= 0; d--)
      if (at[d] > 0) { cols[count] = row - stride[d]; vals[count++] = below[d]; }
    cols[count] = row; vals[count++] = diagonal;
    for (int d = 0; d < dimensions; d++)
      if (at[d] + 1 < shape[d]) { cols[count] = row + stride[d]; vals[count++] = above[d]; }
    PetscCall(MatSetValues(*a, 1, &row, count, cols, vals, INSERT_VALUES));
  }
  PetscCall(assemble(*a));
  PetscFunctionReturn(0);
}

/* A symmetric matrix in coordinates; every rank reads the file and keeps its rows. */
static PetscErrorCode file(Mat *a, const char *path) {
  char line[1024], command[1200];
  long n, m, entries;
  PetscInt first, end;
  PetscFunctionBeginUser;
  snprintf(command, sizeof command, "gzip -dcf '%s'", path);
  FILE *text = popen(command, "r");
  PetscCheck(text && fgets(line, sizeof line, text), PETSC_COMM_WORLD, PETSC_ERR_FILE_OPEN, "%s", path);
  PetscCheck(strstr(line, "coordinate real symmetric"), PETSC_COMM_WORLD, PETSC_ERR_FILE_UNEXPECTED, "%s", line);
  while (line[0] == '%') PetscCheck(fgets(line, sizeof line, text), PETSC_COMM_WORLD, PETSC_ERR_FILE_READ, "%s", path);
  PetscCheck(sscanf(line, "%ld %ld %ld", &n, &m, &entries) == 3, PETSC_COMM_WORLD, PETSC_ERR_FILE_READ, "%s", line);
  PetscCall(reserve(a, n, 150));
  PetscCall(MatGetOwnershipRange(*a, &first, &end));
  for (long entry = 0; entry < entries; entry++) {
    long i, j;
    double val;
    PetscCheck(fscanf(text, "%ld %ld %lf", &i, &j, &val) == 3, PETSC_COMM_WORLD, PETSC_ERR_FILE_READ, "%s", path);
    PetscInt row = i - 1, col = j - 1;
    if (row >= first && row < end) PetscCall(MatSetValue(*a, row, col, val, INSERT_VALUES));
    if (row != col && col >= first && col < end) PetscCall(MatSetValue(*a, col, row, val, INSERT_VALUES));
  }
  pclose(text);
  PetscCall(assemble(*a));
  PetscFunctionReturn(0);
}

static PetscErrorCode make(Mat *a, const char *system) {
  int m;
  PetscFunctionBeginUser;
  if (sscanf(system, "poisson:%d", &m) == 1) PetscCall(grid(a, m, 3, 0));
  else if (sscanf(system, "poisson2:%d", &m) == 1) PetscCall(grid(a, m, 2, 0));
  else if (sscanf(system, "convection:%d", &m) == 1) PetscCall(grid(a, m, 3, 100));
  else if (sscanf(system, "convection2:%d", &m) == 1) PetscCall(grid(a, m, 2, 100));
  else PetscCall(file(a, system));
  PetscFunctionReturn(0);
}

static double now(void) {
  MPI_Barrier(PETSC_COMM_WORLD);
  return MPI_Wtime();
}

static void say(const char *name, double value) { PetscPrintf(PETSC_COMM_WORLD, "%s %.9e\n", name, value); }

/* The norm of A x for an x that is no constant. */
static PetscErrorCode norm(Mat a, Vec x, Vec y) {
  PetscInt first, end;
  PetscReal size;
  PetscFunctionBeginUser;
  PetscCall(VecGetOwnershipRange(x, &first, &end));
  for (PetscInt row = first; row < end; row++) PetscCall(VecSetValue(x, row, 1 / (row + 0.3), INSERT_VALUES));
  PetscCall(VecAssemblyBegin(x));
  PetscCall(VecAssemblyEnd(x));
  PetscCall(MatMult(a, x, y));
  PetscCall(VecNorm(y, NORM_2, &size));
  say("norm", size);
  PetscFunctionReturn(0);
}

static PetscErrorCode residual(Mat a, Vec b, Vec x, Vec r) {
  PetscReal above, below;
  PetscFunctionBeginUser;
  PetscCall(MatMult(a, x, r));
  PetscCall(VecAXPY(r, -1, b));
  PetscCall(VecNorm(r, NORM_2, &above));
  PetscCall(VecNorm(b, NORM_2, &below));
  say("residual", above / below);
  PetscFunctionReturn(0);
}

static PetscErrorCode solve(Mat a, Vec b, Vec x, int iterations, int to_the_end) {
  KSP ksp;
  PetscInt done;
  PetscFunctionBeginUser;
  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, a, a));
  PetscCall(KSPSetTolerances(ksp, to_the_end ? 1e-8 : 1e-60, PETSC_DEFAULT, 1e300, iterations));
  PetscCall(KSPSetFromOptions(ksp));
  double start = now();
  PetscCall(KSPSetUp(ksp));
  PetscCall(KSPSetUpOnBlocks(ksp));
  double ready = now();
  PetscCall(KSPSolve(ksp, b, x));
  double end = now();
  PetscCall(KSPGetIterationNumber(ksp, &done));
  if (to_the_end) {
    say("setup", ready - start);
    say("solve", end - ready);
  }
  say("iteration", (end - ready) / done);
  say("iterations", done);
  PetscCall(KSPDestroy(&ksp));
  PetscFunctionReturn(0);
}

int main(int argc, char **argv) {
  Mat a;
  Vec x, b, y;
  if (argc < 5) {
    fprintf(stderr, "usage: petsc_solvers product|iterate|solve SYSTEM ITERATIONS REPEATS [PETSc's options]\n");
    return 2;
  }
  const char *task = argv[1], *system = argv[2];
  int iterations = atoi(argv[3]), repeats = atoi(argv[4]), is_grid = strchr(system, ':') != NULL;
  PetscFunctionBeginUser;
  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCall(make(&a, system));
  PetscCall(MatCreateVecs(a, &x, &b));
  PetscCall(VecDuplicate(b, &y));
  PetscCall(norm(a, x, y));
  PetscCall(VecSet(x, 1));
  if (is_grid) PetscCall(VecSet(b, 1));
  else PetscCall(MatMult(a, x, b));
  for (int repeat = 0; repeat < repeats; repeat++) {
    if (strcmp(task, "product") == 0) {
      double start = now();
      for (int k = 0; k < iterations; k++) PetscCall(MatMult(a, b, y));
      say("product", (now() - start) / iterations);
    } else {
      PetscCall(solve(a, b, x, iterations, strcmp(task, "solve") == 0));
    }
  }
  if (strcmp(task, "product") != 0) PetscCall(residual(a, b, x, y));
  PetscCall(PetscFinalize());
  return 0;
}
