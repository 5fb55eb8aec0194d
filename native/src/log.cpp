#include "log.h"

#include "llama.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>

namespace {

constexpr size_t k_max_kept = 400; // bytes; a message has room for 512

std::mutex    g_mutex;
std::string   g_errors;
ggml_log_level g_last = GGML_LOG_LEVEL_NONE;

void on_line(ggml_log_level level, const char * text, void * /*user*/) {
    static const bool verbose = std::getenv("SLIPSTREAM_NATIVE_LOG") != nullptr;
    if (verbose) {
        std::fputs(text, stderr);
    }
    std::lock_guard<std::mutex> lock(g_mutex);
    if (level != GGML_LOG_LEVEL_CONT) {
        g_last = level;
    }
    if (g_last != GGML_LOG_LEVEL_ERROR || g_errors.size() > k_max_kept) {
        return;
    }
    g_errors += text;
    while (!g_errors.empty() && g_errors.back() == '\n') {
        g_errors.back() = ' ';
    }
}

} // namespace

void slip_log_install() {
    llama_log_set(on_line, nullptr);
}

std::string slip_log_take_errors() {
    std::lock_guard<std::mutex> lock(g_mutex);
    std::string taken = std::move(g_errors);
    g_errors.clear();
    while (!taken.empty() && taken.back() == ' ') {
        taken.pop_back();
    }
    return taken;
}
