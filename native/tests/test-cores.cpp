// Counts the cores of machines that are folders: test-cores. Exit status 1 if a count is wrong.

#include "cores.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

struct machine {
    std::string root;

    void write(const std::string & path, const std::string & text) const {
        fs::create_directories(fs::path(root + path).parent_path());
        std::ofstream(root + path) << text << "\n";
    }
    void cpu(int cpu, int core, const char * file = nullptr, int value = 0, int package = 0) const {
        const std::string at = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
        write(at + "/topology/core_id", std::to_string(core));
        write(at + "/topology/physical_package_id", std::to_string(package));
        if (file) {
            write(at + file, std::to_string(value));
        }
    }
};

struct test {
    const char * name;
    int          n_cpus, wanted;
    std::function<void(const machine &)> make;
    std::vector<int> allowed = {}; // all if empty
};

const char * const k_clock = "/cpufreq/cpuinfo_max_freq";

void eight_threads(const machine & m) {
    for (int i = 0; i < 8; ++i) {
        m.cpu(i, i % 4);
    }
}

const test k_tests[] = {
    { "nothing can be read", 4, 4, [](const machine &) {} },
    { "two threads a core", 8, 4, eight_threads },
    { "pinned to three processors of two cores", 8, 2, eight_threads, { 0, 1, 4 } },
    { "two packages with the same core numbers", 4, 4, [](const machine & m) {
        for (int i = 0; i < 4; ++i) {
            m.cpu(i, i % 2, nullptr, 0, i / 2);
        }
    } },
    { "Intel names efficiency cores", 12, 4, [](const machine & m) {
        for (int i = 0; i < 12; ++i) {
            m.cpu(i, i < 8 ? i / 2 : i);
        }
        m.write("/sys/devices/cpu_atom/cpus", "8-11");
    } },
    { "pinned to efficiency cores", 12, 2, [](const machine & m) {
        for (int i = 0; i < 12; ++i) {
            m.cpu(i, i);
        }
        m.write("/sys/devices/cpu_atom/cpus", "8-11");
    }, { 8, 10 } },
    { "small cores of less capacity", 8, 4, [](const machine & m) {
        for (int i = 0; i < 8; ++i) {
            m.cpu(i, i, "/cpu_capacity", i < 4 ? 400 : 1024);
        }
    } },
    { "single cores that clock a little higher", 4, 4, [](const machine & m) {
        for (int i = 0; i < 4; ++i) {
            m.cpu(i, i, k_clock, i < 2 ? 5200000 : 4700000);
        }
    } },
    { "a quota of the own group", 8, 2, [](const machine & m) {
        m.write("/proc/self/cgroup", "0::/user/app");
        m.write("/sys/fs/cgroup/user/app/cpu.max", "250000 100000");
    } },
    { "a quota of the group above", 8, 3, [](const machine & m) {
        m.write("/proc/self/cgroup", "0::/user/app");
        m.write("/sys/fs/cgroup/user/app/cpu.max", "max 100000");
        m.write("/sys/fs/cgroup/user/cpu.max", "300000 100000");
    } },
    { "inside of a container", 8, 2, [](const machine & m) {
        m.write("/proc/self/cgroup", "0::/");
        m.write("/sys/fs/cgroup/cpu.max", "200000 100000");
    } },
    { "less than one processor", 8, 1, [](const machine & m) {
        m.write("/proc/self/cgroup", "0::/");
        m.write("/sys/fs/cgroup/cpu.max", "50000 100000");
    } },
    { "a quota beyond all whole numbers of 32 bits", 8, 8, [](const machine & m) {
        m.write("/proc/self/cgroup", "0::/");
        m.write("/sys/fs/cgroup/cpu.max", "17592186044415 1000");
    } },
    { "version 1, its path outside", 8, 4, [](const machine & m) {
        m.write("/proc/self/cgroup", "4:memory:/docker/x\n3:cpu,cpuacct:/docker/x");
        m.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "400000");
        m.write("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
    } },
    { "version 1 without a limit", 8, 8, [](const machine & m) {
        m.write("/proc/self/cgroup", "3:cpu:/");
        m.write("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1");
        m.write("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000");
    } },
};

} // namespace

int main() {
    const fs::path home = fs::temp_directory_path() / "slipstream-test-cores";
    int failed = 0;
    for (const test & t : k_tests) {
        fs::remove_all(home);
        fs::create_directories(home);
        t.make({ home.string() });
        std::vector<int> allowed = t.allowed;
        for (int i = 0; allowed.size() < size_t(t.n_cpus) && t.allowed.empty(); ++i) {
            allowed.push_back(i);
        }
        const int found = slip_cpu_cores(home.string(), allowed);
        failed += found != t.wanted;
        std::printf("%-6s %s: %d, wanted %d\n", found == t.wanted ? "ok" : "FAILED", t.name, found, t.wanted);
    }
    fs::remove_all(home);
    const int here = slip_cpu_cores();
    std::printf("here: %d\n", here);
    return failed || here < 1 ? 1 : 0;
}
