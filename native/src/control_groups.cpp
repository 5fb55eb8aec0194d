#include "control_groups.h"

#include <fstream>

std::vector<slip_control_group> slip_control_groups(const std::string & root, const std::string & controller) {
    std::vector<slip_control_group> out;
    std::ifstream groups(root + "/proc/self/cgroup"); // "number:controllers:path", without controllers of v2
    for (std::string line; std::getline(groups, line);) {
        const size_t first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) {
            continue;
        }
        const std::string controllers = line.substr(first + 1, second - first - 1);
        const bool v2 = controllers.empty();
        if (!v2 && ("," + controllers + ",").find("," + controller + ",") == std::string::npos) {
            continue;
        }
        for (std::string path = line.substr(second + 1);; path.erase(path.rfind('/'))) {
            path = path == "/" ? "" : path;
            if (v2) {
                out.push_back({ root + "/sys/fs/cgroup" + path, v2 });
            } else {
                out.push_back({ root + "/sys/fs/cgroup/" + controller + path, v2 });
                if (controllers != controller) { // mounted together, with or without a link for each
                    out.push_back({ root + "/sys/fs/cgroup/" + controllers + path, v2 });
                }
            }
            if (path.empty() || path.rfind('/') == std::string::npos) {
                break;
            }
        }
    }
    return out;
}
