#include "log.h"

#include "llama.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>

namespace {

constexpr size_t k_max_kept = 400;  // bytes; a message has room for 512
constexpr size_t k_max_line = 4096; // bytes; what is longer comes in parts

std::mutex     g_mutex;
std::string    g_errors;
std::string    g_line; // not ended yet
ggml_log_level g_last = GGML_LOG_LEVEL_NONE;

std::atomic<slip_log> g_log { nullptr };
std::atomic<int32_t>  g_least { SLIP_LOG_ERROR };

int32_t level_of(ggml_log_level level) {
    switch (level) {
        case GGML_LOG_LEVEL_ERROR: return SLIP_LOG_ERROR;
        case GGML_LOG_LEVEL_WARN:  return SLIP_LOG_WARNING;
        case GGML_LOG_LEVEL_INFO:  return SLIP_LOG_INFO;
        default:                   return 0;
    }
}

void take(ggml_log_level level, const char * text) {
    static const bool verbose = std::getenv("SLIPSTREAM_NATIVE_LOG") != nullptr;
    if (verbose) {
        std::fputs(text, stderr);
    }
    const slip_log log = g_log;
    std::string line;
    int32_t of = 0;
    {
        std::lock_guard<std::mutex> lock(g_mutex);
        if (level != GGML_LOG_LEVEL_CONT) {
            g_last = level;
            g_line.clear();
        }
        if (g_last == GGML_LOG_LEVEL_ERROR && g_errors.size() <= k_max_kept) {
            g_errors += text;
            while (!g_errors.empty() && g_errors.back() == '\n') {
                g_errors.back() = ' ';
            }
        }
        of = level_of(g_last);
        if (!log || of < g_least) {
            return;
        }
        g_line += text;
        if (g_line.empty() || (g_line.back() != '\n' && g_line.size() < k_max_line)) {
            return;
        }
        line.swap(g_line);
    }
    while (!line.empty() && line.back() == '\n') {
        line.pop_back();
    }
    if (!line.empty()) {
        log(of, line.c_str()); // without the lock: it may want another one
    }
}

// Whoever says it may be C, or a thread of a graph: no exception may come back.
void on_text(ggml_log_level level, const char * text, void * /*user*/) {
    try {
        take(level, text);
    } catch (const std::exception &) {
        // there is no memory for the line
    }
}

} // namespace

void slip_log_install() {
    llama_log_set(on_text, nullptr);
}

void slip_log_to(slip_log log, int32_t least) {
    g_least = least;
    g_log   = log;
    slip_log_install();
}

void slip_log_info(const std::string & line) {
    on_text(GGML_LOG_LEVEL_INFO, (line + "\n").c_str(), nullptr);
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
