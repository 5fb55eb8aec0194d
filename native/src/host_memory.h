// How much memory the machine has left.

#pragma once

#include <cstdint>
#include <string>

// Bytes that can be taken without others being pushed out: what the system has available, within what the process's
// control groups and its own limits allow, 1 where that is nothing. 0 if the system does not say.
uint64_t slip_host_memory_free();

#if defined(__linux__)
// The same of a machine whose files lie under `root`, for tests.
uint64_t slip_host_memory_free(const std::string & root);
#endif
