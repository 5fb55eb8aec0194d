#include "devices.h"

#include "failure.h"
#include "host_memory.h"
#include "text.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

bool slip_device_is_gpu(ggml_backend_dev_t device) {
    const auto type = ggml_backend_dev_type(device);
    return type == GGML_BACKEND_DEVICE_TYPE_GPU || type == GGML_BACKEND_DEVICE_TYPE_IGPU;
}

using read_stats = void (*)(uint64_t * n_direct, uint64_t * n_captured, uint64_t * n_launched);

static read_stats stats_of(ggml_backend_dev_t device) {
    return (read_stats) ggml_backend_reg_get_proc_address(ggml_backend_dev_backend_reg(device), "ggml_backend_cuda_graph_stats");
}

bool slip_device_captures_graphs(ggml_backend_dev_t device) {
    return stats_of(device) != nullptr;
}

int64_t slip_device_graphs_built(ggml_backend_dev_t device) {
    uint64_t n_direct = 0, n_captured = 0, n_launched = 0;
    if (const read_stats read = stats_of(device)) {
        read(&n_direct, &n_captured, &n_launched);
    }
    return n_launched > 0 ? int64_t(n_direct + n_captured) : 0; // no card launches any where graphs are switched off
}

std::vector<ggml_backend_dev_t> slip_devices() {
    std::vector<ggml_backend_dev_t> devices;
    for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
        ggml_backend_dev_t device = ggml_backend_dev_get(i);
        if (slip_device_is_gpu(device) || ggml_backend_dev_type(device) == GGML_BACKEND_DEVICE_TYPE_CPU) {
            devices.push_back(device);
        }
    }
    std::stable_partition(devices.begin(), devices.end(), [](auto d) { return !slip_device_is_gpu(d); });
    return devices;
}

ggml_backend_dev_t slip_device_find(const char * name) {
    for (ggml_backend_dev_t device : slip_devices()) {
        const bool wanted = name ? std::strcmp(ggml_backend_dev_name(device), name) == 0 : !slip_device_is_gpu(device);
        if (wanted) {
            return device;
        }
    }
    throw slip_failure(SLIP_ERROR_DEVICE, std::string("There is no device `") + (name ? name : "CPU") + "`.",
        "Ask `slipstream devices` which there are.");
}

// Bytes of a graphics card as if it had no more, where the environment names fewer than there are.
static uint64_t most_of_gpu() {
    const char * named = std::getenv("SLIPSTREAM_GPU_MEMORY");
    const uint64_t bytes = named ? std::strtoull(named, nullptr, 10) : 0;
    return bytes > 0 ? bytes : UINT64_MAX;
}

slip_device slip_device_describe(ggml_backend_dev_t device) {
    slip_device out = {};
    slip_copy_text(out.name, ggml_backend_dev_name(device));
    slip_copy_text(out.description, ggml_backend_dev_description(device));
    switch (ggml_backend_dev_type(device)) {
        case GGML_BACKEND_DEVICE_TYPE_GPU:  out.kind = SLIP_DEVICE_GPU;        break;
        case GGML_BACKEND_DEVICE_TYPE_IGPU: out.kind = SLIP_DEVICE_INTEGRATED; break;
        default:                            out.kind = SLIP_DEVICE_CPU;        break;
    }

    size_t free = 0, total = 0;
    ggml_backend_dev_memory(device, &free, &total);
    // Of the processor's, ggml says that all of it is free.
    out.memory_free  = out.kind == SLIP_DEVICE_CPU ? slip_host_memory_free() : std::min(uint64_t(free), most_of_gpu());
    out.memory_total = out.kind == SLIP_DEVICE_CPU ? total : std::min(uint64_t(total), most_of_gpu());
    return out;
}

void slip_device_check(ggml_backend_t backend, ggml_cgraph * graph, const char * what, const char * remedy) {
    for (int i = 0; i < ggml_graph_n_nodes(graph); ++i) {
        const ggml_tensor * node = ggml_graph_node(graph, i);
        if (!ggml_backend_supports_op(backend, node)) {
            throw slip_failure(SLIP_ERROR_DEVICE,
                std::string(ggml_backend_name(backend)) + " cannot " + what + ": it lacks " + ggml_op_desc(node) + ".", remedy);
        }
    }
}
