#include "assertions.h"

#include "ggml.h"

#include <cstdio>
#include <mutex>
#include <stdexcept>
#include <string>

namespace {

thread_local int  g_alive  = 0;
thread_local bool g_failed = false;

std::mutex            g_mutex;
int                   g_all = 0; // of all threads
ggml_abort_callback_t g_before = nullptr;

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

// Nothing is installed while there is none: ggml then tells of itself in its own way, with a backtrace.
slip_assertions::slip_assertions() {
    std::lock_guard<std::mutex> lock(g_mutex);
    if (g_all++ == 0) {
        g_before = ggml_set_abort_callback(on_abort);
    }
    ++g_alive;
}

slip_assertions::~slip_assertions() {
    std::lock_guard<std::mutex> lock(g_mutex);
    --g_alive;
    if (--g_all == 0) {
        ggml_set_abort_callback(g_before);
    }
}

bool slip_assertions::take_failed() {
    const bool failed = g_failed;
    g_failed = false;
    return failed;
}
