// Two ranks send each other messages from a word to some megabytes, both ways at once, and rank 0 prints a checksum.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int largest = 8 << 20;
  unsigned char* out = malloc((size_t)largest);
  unsigned char* in = malloc((size_t)largest);
  unsigned long sum = 14695981039346656037ul;
  for (int size = 64; size <= largest; size *= 2) {
    for (int round = 0; round < 4; ++round) {
      for (int i = 0; i < size; ++i) out[i] = (unsigned char)(i * 7 + round + rank);
      MPI_Sendrecv(out, size, MPI_BYTE, 1 - rank, round, in, size, MPI_BYTE, 1 - rank, round, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
      for (int i = 0; i < size; ++i) sum = (sum ^ in[i]) * 1099511628211ul;
    }
  }
  unsigned long total = 0;
  MPI_Reduce(&sum, &total, 1, MPI_UNSIGNED_LONG, MPI_BXOR, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("checksum=%lx\n", total);
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
