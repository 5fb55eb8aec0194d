#include "host_memory.h"

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

} // namespace

uint64_t slip_host_memory_free(const std::string & root) {
    uint64_t free = field(root + "/proc/meminfo", "MemAvailable:") * 1024;
    std::ifstream groups(root + "/proc/self/cgroup");
    for (std::string line; std::getline(groups, line);) {
        const size_t second = line.find(':', line.find(':') + 1);
        if (line.compare(0, 3, "0::") != 0 || second == std::string::npos) {
            continue;
        }
        // Each group above sets a limit of its own. Inside of a container only the root can be read.
        for (std::string path = line.substr(second + 1);; path.erase(path.rfind('/'))) {
            path = path == "/" ? "" : path;
            const std::string folder = root + "/sys/fs/cgroup" + path;
            uint64_t most = 0, used = 0;
            if (read_number(folder + "/memory.max", most) && read_number(folder + "/memory.current", used)) {
                used -= std::min(used, field(folder + "/memory.stat", "inactive_file")); // given back when it is wanted
                free  = std::min(free, most - std::min(most, used));
            }
            if (path.empty() || path.rfind('/') == std::string::npos) {
                break;
            }
        }
    }
    return free;
}

uint64_t slip_host_memory_free() {
    uint64_t free = slip_host_memory_free("");
    rlimit limit = {}; // of the shell's ulimit -v
    uint64_t pages = 0;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && read_number("/proc/self/statm", pages)) {
        const uint64_t used = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
        free = std::min<uint64_t>(free, limit.rlim_cur - std::min<uint64_t>(limit.rlim_cur, used));
    }
    return free;
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
