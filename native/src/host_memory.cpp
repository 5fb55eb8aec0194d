#include "host_memory.h"

#include "control_groups.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#if defined(__linux__)
#include <sys/resource.h>
#include <unistd.h>
#elif defined(__APPLE__)
#include <mach/mach.h>
#elif defined(_WIN32)
#define NOMINMAX
#include <windows.h>
#endif

#if defined(__linux__)

namespace {

// The number behind `name` in a file of lines "name number ...", or 0.
uint64_t field(const std::string & path, const std::string & name) {
    std::ifstream file(path);
    for (std::string word; file >> word;) {
        uint64_t value = 0;
        if (word == name && file >> value) {
            return value;
        }
    }
    return 0;
}

bool read_number(const std::string & path, uint64_t & out) {
    std::ifstream file(path);
    return static_cast<bool>(file >> out); // not for "max"
}

// Of "not known" and "nothing left", which is at least 1.
constexpr uint64_t k_unknown = UINT64_MAX;

uint64_t told(uint64_t free) {
    return free == k_unknown ? 0 : std::max<uint64_t>(free, 1);
}

uint64_t left(uint64_t most, uint64_t used) {
    return most - std::min(most, used);
}

uint64_t available(const std::string & root) {
    const uint64_t machine = field(root + "/proc/meminfo", "MemAvailable:") * 1024;
    uint64_t free = machine > 0 ? machine : k_unknown;
    for (const slip_control_group & group : slip_control_groups(root, "memory")) {
        uint64_t most = 0, used = 0;
        if (!read_number(group.folder + (group.v2 ? "/memory.max" : "/memory.limit_in_bytes"), most) ||
                !read_number(group.folder + (group.v2 ? "/memory.current" : "/memory.usage_in_bytes"), used)) {
            continue;
        }
        // Given back when it is wanted.
        const uint64_t files = field(group.folder + "/memory.stat", group.v2 ? "inactive_file" : "total_inactive_file");
        free = std::min(free, left(most, left(used, files)));
    }
    return free;
}

} // namespace

uint64_t slip_host_memory_free(const std::string & root) {
    return told(available(root));
}

uint64_t slip_host_memory_free() {
    uint64_t free = available("");
    rlimit limit = {}; // of the shell's ulimit -v
    uint64_t pages = 0;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && read_number("/proc/self/statm", pages)) {
        free = std::min<uint64_t>(free, left(limit.rlim_cur, pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE))));
    }
    return told(free);
}

#elif defined(__APPLE__)

uint64_t slip_host_memory_free() {
    vm_statistics64_data_t pages = {};
    mach_msg_type_number_t count = HOST_VM_INFO64_COUNT;
    if (host_statistics64(mach_host_self(), HOST_VM_INFO64, reinterpret_cast<host_info64_t>(&pages), &count) != KERN_SUCCESS) {
        return 0;
    }
    return (uint64_t(pages.free_count) + pages.inactive_count + pages.purgeable_count) * vm_kernel_page_size;
}

#elif defined(_WIN32)

uint64_t slip_host_memory_free() {
    MEMORYSTATUSEX status = {};
    status.dwLength = sizeof(status);
    return GlobalMemoryStatusEx(&status) ? status.ullAvailPhys : 0;
}

#else

uint64_t slip_host_memory_free() {
    return 0;
}

#endif
