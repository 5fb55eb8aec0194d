// Whether memory could not be had on this thread while a watch lives: known by what asked for it, not by a message.

#pragma once

#include "ggml.h"

class slip_alloc_watch {
public:
    bool failed() const { return ggml_alloc_failures() != before_; }

private:
    int64_t before_ = ggml_alloc_failures();
};
