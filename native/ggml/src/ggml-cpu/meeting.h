// Where the threads of a graph meet.
//
// A thread that has come waits by spinning, because the others are mostly there within microseconds; but not for long,
// and not at all for a while after it was long, because then other programs want the cores. What one thread does
// quicker than several could agree on is an errand of the last one to come: that one runs for certain.

#pragma once

#ifdef __cplusplus
extern "C" {
#endif

struct ggml_meeting;

struct ggml_meeting * ggml_meeting_new(void);
void                  ggml_meeting_free(struct ggml_meeting * meeting);

// Returns once n threads have come and the last one has run the errand, if there is one. Within an errand there is
// nobody to wait for.
void ggml_meet(struct ggml_meeting * meeting, int n, void (*errand)(void * ctx), void * ctx);

#ifdef __cplusplus
}
#endif
