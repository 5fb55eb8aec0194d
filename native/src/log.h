// llama.cpp says why it failed only in its log: keep the last errors, and hand the rest on.

#pragma once

#include "slipstream.h"

#include <string>

// From now on log lines of llama.cpp and ggml come here: errors are kept, and all lines go
// to stderr if SLIPSTREAM_NATIVE_LOG is set in the environment.
void slip_log_install();

// The same, and whole lines of `least` and above go to `log`.
void slip_log_to(slip_log log, int32_t least);

// A line of our own among them, of level SLIP_LOG_INFO.
void slip_log_info(const std::string & line);

// The error lines since the last call, joined by a space; empty if there were none.
std::string slip_log_take_errors();
