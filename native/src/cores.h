// How many threads the CPU's products run best on.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

// Physical performance cores that this process may use, 1 or more: a second thread of a core adds next to
// nothing to products that wait for memory, an efficiency core makes the others wait, and threads beyond
// the affinity mask or a container's quota stand in each other's way.
int32_t slip_cpu_cores();

// Linux: the same for what a file system at `root` tells ("" for this machine's) and the processors in
// `allowed`. What cannot be read narrows nothing.
int32_t slip_cpu_cores(const std::string & root, const std::vector<int> & allowed);
