#include "assertions.h"

#include "ggml.h"

#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>

namespace {

thread_local int  g_alive  = 0;
thread_local bool g_failed = false;

void on_abort(const char * message) {
    if (g_alive == 0) {
        std::fprintf(stderr, "%s\n", message); // ggml ends the process when this is back
        return;
    }
    g_failed = true;
    const std::string text(message); // begins with the path of a source file
    throw std::runtime_error(text.substr(text.find_last_of("/\\", text.find(':', 2)) + 1));
}

} // namespace

slip_assertions::slip_assertions() {
    static std::once_flag once;
    std::call_once(once, [] { ggml_set_abort_callback(on_abort); });
    if (g_alive++ == 0) {
        g_failed = false;
    }
}

slip_assertions::~slip_assertions() {
    --g_alive;
}

bool slip_assertions::failed() {
    return g_failed;
}
