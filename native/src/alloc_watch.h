// Whether memory could not be had on this thread while a watch lives: known by what asked for it, not by a message.

#pragma once

#include "ggml.h"

#include <algorithm>

class slip_alloc_watch {
public:
    bool failed() const { return ggml_alloc_failures() > std::max(before_, forgiven_); }

    // What could not be had was asked for again, in less: no watch of this thread counts it any more.
    static void forgive() { forgiven_ = ggml_alloc_failures(); }

private:
    int64_t before_ = ggml_alloc_failures();
    static inline thread_local int64_t forgiven_ = 0;
};
