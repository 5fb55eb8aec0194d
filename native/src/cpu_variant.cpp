#include "cpu_variant.h"

#include "failure.h"

#include "ggml-backend-best.h"

#include <cstdlib>
#include <filesystem>
#include <string>

#if defined(_WIN32)
#  include <windows.h>
#else
#  include <dlfcn.h>
#endif

namespace {

#if defined(_WIN32)
constexpr const char * k_prefix = "ggml-cpu-";
constexpr const char * k_suffix = ".dll";
#else
constexpr const char * k_prefix = "libggml-cpu-";
constexpr const char * k_suffix = ".so";
#endif

// Where this library lies.
std::filesystem::path own_folder() {
#if defined(_WIN32)
    HMODULE module = nullptr;
    wchar_t path[32768];
    GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT,
        reinterpret_cast<const wchar_t *>(&own_folder), &module);
    const DWORD length = GetModuleFileNameW(module, path, 32768);
    return std::filesystem::path(std::wstring(path, length)).parent_path();
#else
    Dl_info info = {};
    dladdr(reinterpret_cast<void *>(&own_folder), &info);
    return std::filesystem::path(info.dli_fname ? info.dli_fname : "").parent_path();
#endif
}

} // namespace

void slip_load_cpu() {
    if (ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU)) {
        return;
    }
    const std::filesystem::path folder = own_folder() / "backends";
    const char * named = std::getenv("SLIPSTREAM_CPU");
    if (!named) {
        if (!ggml_backend_load_best("cpu", /*silent*/ true, folder.u8string().c_str())) {
            throw slip_failure(SLIP_ERROR_DEVICE, "In `" + folder.u8string() + "` is no backend for this processor.", "Install Slipstream again.");
        }
        return;
    }
    const std::filesystem::path file = folder / (std::string(k_prefix) + named + k_suffix);
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) {
        throw slip_failure(SLIP_ERROR_DEVICE, "`" + file.u8string() + "` is missing, which the variable SLIPSTREAM_CPU asks for.",
            "Start without that variable.");
    }
    if (!ggml_backend_load(file.u8string().c_str())) {
        throw slip_failure(SLIP_ERROR_DEVICE, "This processor cannot execute `" + file.u8string() + "`, which the variable SLIPSTREAM_CPU asks for.",
            "Start without that variable.");
    }
}
