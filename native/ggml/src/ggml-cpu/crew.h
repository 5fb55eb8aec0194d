// The threads that compute a graph, and where they meet.
//
// A graph is begun by the thread that has it, alone: others join between two nodes, as they come to run. So nobody waits
// for a thread that sleeps or that another program has pushed from its core before it took part. One that is in is
// waited for by spinning, because the others are mostly there within microseconds; but not for long, and not at all for
// a while after it was long, because then other programs want the cores. What one thread does quicker than several could
// agree on is an errand of the last one to come: that one runs for certain.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ggml_crew;

// The crew of the calling thread, which keeps its helpers between two graphs.
struct ggml_crew * ggml_crew_of_caller(void);

// Calls work(ctx, 0), and meanwhile work(ctx, i) with each i up to n - 1 at most from as many helpers as come, in order
// of i. Returns once all of them have. Work ends with a meeting whose errand returned false. On a busy machine fewer may
// be quicker than n: then so many are chosen, by what work took against the usual for its kind.
void ggml_crew_run(struct ggml_crew * crew, int n, uint64_t (*kind)(void * ctx), void (*work)(void * ctx, int ith), void * ctx);

// Returns once all who are in have come, the last one has run the errand, and those who have come to join are in as
// well; unless the errand returns false: then the work is at its end, for all, and what belongs to it may be gone. Within
// an errand there is nobody to wait for.
bool ggml_crew_meet(struct ggml_crew * crew, bool (*errand)(void * ctx), void * ctx);

// Returns once all who are in have come: between two meetings they stay the same.
void ggml_crew_barrier(struct ggml_crew * crew);

// How many are in.
int ggml_crew_size(const struct ggml_crew * crew);

#ifdef __cplusplus
}
#endif
