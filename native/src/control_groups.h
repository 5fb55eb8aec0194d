// Linux: the control groups of this process.

#pragma once

#include <string>
#include <vector>

struct slip_control_group {
    std::string folder;
    bool        v2; // of the unified hierarchy: other files than those of one controller's own
};

// Those that limit `controller` ("cpu", "memory"), each with those above it: what can be read of them counts. Inside of a
// container a group's own path is not there, as its root is that group. `root` is where the file system lies, "" but in tests.
std::vector<slip_control_group> slip_control_groups(const std::string & root, const std::string & controller);
