// llama.cpp says why it failed only in its log: keep the last errors, print the rest on demand.

#pragma once

#include <string>

// From now on log lines of llama.cpp and ggml come here: errors are kept, and all lines go
// to stderr if SLIPSTREAM_NATIVE_LOG is set in the environment.
void slip_log_install();

// The error lines since the last call, joined by a space; empty if there were none.
std::string slip_log_take_errors();
