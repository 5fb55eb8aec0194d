// What a program of ours says of llama.cpp's log: errors, on stderr.

#pragma once

#include "llama.h"

#include <cstdio>

static inline void log_errors_only() {
    llama_log_set([](ggml_log_level level, const char * text, void *) {
        if (level == GGML_LOG_LEVEL_ERROR) {
            std::fputs(text, stderr);
        }
    }, nullptr);
}
