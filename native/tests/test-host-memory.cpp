// Asks machines that are folders for free memory: test-host-memory. Exit status 1 if an answer is wrong.

#include "host_memory.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

struct file {
    const char * path;
    const char * text;
};

struct test {
    const char *      name;
    uint64_t          wanted;
    std::vector<file> files;
};

constexpr uint64_t k_gib = uint64_t(1) << 30;
const file k_four = { "/proc/meminfo", "MemTotal:       8388608 kB\nMemFree:         1048576 kB\nMemAvailable:    4194304 kB\n" };
const file k_group = { "/proc/self/cgroup", "0::/user/app\n" };

const test k_tests[] = {
    { "nothing can be read", 0, {} },
    { "what the system has available", 4 * k_gib, { k_four } },
    { "a group without a limit", 4 * k_gib, { k_four, k_group, { "/sys/fs/cgroup/user/app/memory.max", "max\n" } } },
    { "a group's limit, of which half is used", k_gib, { k_four, k_group,
        { "/sys/fs/cgroup/user/app/memory.max", "2147483648\n" }, { "/sys/fs/cgroup/user/app/memory.current", "1073741824\n" } } },
    { "files in memory are given back", 2 * k_gib, { k_four, k_group,
        { "/sys/fs/cgroup/user/app/memory.max", "2147483648\n" }, { "/sys/fs/cgroup/user/app/memory.current", "1073741824\n" },
        { "/sys/fs/cgroup/user/app/memory.stat", "anon 0\ninactive_file 1073741824\nactive_file 5\n" } } },
    { "the limit of the group above", k_gib, { k_four, k_group, { "/sys/fs/cgroup/user/app/memory.max", "max\n" },
        { "/sys/fs/cgroup/user/memory.max", "1073741824\n" }, { "/sys/fs/cgroup/user/memory.current", "0\n" } } },
    { "inside of a container", k_gib, { k_four, { "/proc/self/cgroup", "0::/\n" },
        { "/sys/fs/cgroup/memory.max", "1073741824\n" }, { "/sys/fs/cgroup/memory.current", "0\n" } } },
    { "the limit alone is known", k_gib, { { "/proc/self/cgroup", "0::/\n" },
        { "/sys/fs/cgroup/memory.max", "1073741824\n" }, { "/sys/fs/cgroup/memory.current", "0\n" } } },
    { "a group of version 1", k_gib, { k_four, { "/proc/self/cgroup", "7:cpu,cpuacct:/a\n4:memory:/a/b\n0::/a\n" },
        { "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n" }, { "/sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "5\n" },
        { "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "2147483648\n" }, { "/sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1610612736\n" },
        { "/sys/fs/cgroup/memory/a/memory.stat", "inactive_file 9\ntotal_inactive_file 536870912\n" } } },
    { "more used than allowed", 1, { k_four, { "/proc/self/cgroup", "0::/\n" },
        { "/sys/fs/cgroup/memory.max", "1073741824\n" }, { "/sys/fs/cgroup/memory.current", "1073741825\n" } } },
};

} // namespace

int main() {
    const fs::path home = fs::temp_directory_path() / "slipstream-test-host-memory";
    int failed = 0;
    for (const test & t : k_tests) {
        fs::remove_all(home);
        fs::create_directories(home);
        for (const file & f : t.files) {
            const fs::path at = home.string() + f.path;
            fs::create_directories(at.parent_path());
            std::ofstream(at) << f.text;
        }
        const uint64_t found = slip_host_memory_free(home.string());
        failed += found != t.wanted;
        std::printf("%-6s %s: %llu, wanted %llu\n", found == t.wanted ? "ok" : "FAILED", t.name,
            static_cast<unsigned long long>(found), static_cast<unsigned long long>(t.wanted));
    }
    fs::remove_all(home);
    const uint64_t here = slip_host_memory_free();
    std::printf("here: %llu\n", static_cast<unsigned long long>(here));
    return failed || here == 0 ? 1 : 0;
}
