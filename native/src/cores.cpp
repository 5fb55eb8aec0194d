#include "cores.h"

#include "control_groups.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#elif defined(__APPLE__)
#include <sys/sysctl.h>
#elif defined(_WIN32)
#define NOMINMAX
#include <windows.h>
#endif

namespace {

// Of the fastest core's capacity or clock; single cores of one kind differ by a few per cent.
constexpr double k_performance = 0.8;

std::string first_line(const std::string & path) {
    std::string line;
    std::ifstream file(path);
    std::getline(file, line);
    return line;
}

double number(const std::string & text) {
    char * end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return end == text.c_str() ? 0 : value;
}

// "0-3,8" -> 0 1 2 3 8
std::set<int> list(const std::string & text) {
    std::set<int> out;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');) {
        const size_t dash = part.find('-');
        const int first = std::atoi(part.c_str()), last = dash == std::string::npos ? first : std::atoi(part.c_str() + dash + 1);
        for (int i = first; !part.empty() && i <= last; ++i) {
            out.insert(i);
        }
    }
    return out;
}

// Processors that the quotas of the process's control groups pay for; 0: no limit.
double quota(const std::string & root) {
    double least = 0;
    const auto limit = [&](double processors) {
        least = processors > 0 && (least == 0 || processors < least) ? processors : least;
    };
    for (const slip_control_group & group : slip_control_groups(root, "cpu")) {
        double allowed = 0, period = 0;
        if (group.v2) {
            std::istringstream(first_line(group.folder + "/cpu.max")) >> allowed >> period; // "max" is no number
        } else {
            allowed = number(first_line(group.folder + "/cpu.cfs_quota_us")); // -1: none
            period  = number(first_line(group.folder + "/cpu.cfs_period_us"));
        }
        if (allowed > 0 && period > 0) {
            limit(allowed / period);
        }
    }
    return least;
}

} // namespace

int32_t slip_cpu_cores(const std::string & root, const std::vector<int> & allowed) {
    const std::string cpus = root + "/sys/devices/system/cpu/cpu";

    // One processor of each core; Intel names its efficiency cores.
    const std::set<int> slow = list(first_line(root + "/sys/devices/cpu_atom/cpus"));
    std::set<std::string> seen;
    std::vector<int> cores;
    for (const int cpu : allowed) {
        const std::string at = cpus + std::to_string(cpu) + "/topology/", core = first_line(at + "core_id");
        const std::string name = core.empty() ? "#" + std::to_string(cpu) : first_line(at + "physical_package_id") + "." +
            first_line(at + "cluster_id") + "." + core;
        if (seen.insert(name).second) {
            cores.push_back(cpu);
        }
    }
    // Others by their capacity or highest clock.
    const auto speed = [&](int cpu) {
        const std::string at = cpus + std::to_string(cpu);
        const double capacity = number(first_line(at + "/cpu_capacity"));
        return capacity > 0 ? capacity : number(first_line(at + "/cpufreq/cpuinfo_max_freq"));
    };
    double fastest = 0;
    for (const int cpu : cores) {
        fastest = std::max(fastest, speed(cpu));
    }
    int32_t n = 0;
    for (const int cpu : cores) {
        const double s = speed(cpu);
        n += !slow.count(cpu) && (s == 0 || s >= k_performance * fastest);
    }
    n = n > 0 ? n : static_cast<int32_t>(cores.size()); // pinned to efficiency cores

    const double paid = quota(root);
    return std::max(1, paid > 0 ? static_cast<int32_t>(std::min<double>(n, paid)) : n);
}

int32_t slip_cpu_cores() {
    const int32_t all = std::max(1, static_cast<int32_t>(std::thread::hardware_concurrency()));
#if defined(__linux__)
    std::vector<int> allowed;
    cpu_set_t mask;
    CPU_ZERO(&mask);
    if (sched_getaffinity(0, sizeof(mask), &mask) == 0) {
        for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
            if (CPU_ISSET(cpu, &mask)) {
                allowed.push_back(cpu);
            }
        }
    }
    return allowed.empty() ? all : slip_cpu_cores("", allowed);
#elif defined(__APPLE__)
    for (const char * name : { "hw.perflevel0.physicalcpu", "hw.physicalcpu" }) {
        int32_t n = 0;
        size_t size = sizeof(n);
        if (sysctlbyname(name, &n, &size, nullptr, 0) == 0 && n > 0) {
            return n;
        }
    }
    return all;
#elif defined(_WIN32)
    DWORD size = 0;
    GetLogicalProcessorInformationEx(RelationProcessorCore, nullptr, &size);
    std::vector<char> buffer(size);
    DWORD_PTR process = 0, system = 0;
    GetProcessAffinityMask(GetCurrentProcess(), &process, &system); // 0 with several groups of processors
    if (size == 0 || !GetLogicalProcessorInformationEx(RelationProcessorCore,
            reinterpret_cast<SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX *>(buffer.data()), &size)) {
        return all;
    }
    BYTE best = 0;
    int32_t n = 0;
    for (DWORD at = 0; at < size;) {
        const auto * core = reinterpret_cast<const SYSTEM_LOGICAL_PROCESSOR_INFORMATION_EX *>(buffer.data() + at);
        at += core->Size;
        if (process && !(core->Processor.GroupMask[0].Mask & process)) {
            continue;
        }
        const BYTE kind = core->Processor.EfficiencyClass; // the higher, the faster
        n    = kind > best ? 1 : n + (kind == best);
        best = std::max(best, kind);
    }
    return n > 0 ? n : all;
#else
    return all;
#endif
}
