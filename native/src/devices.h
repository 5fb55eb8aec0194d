// Devices as ggml knows them.

#pragma once

#include "slipstream.h"

#include "ggml-backend.h"

#include <cstdint>
#include <vector>

// All devices that can hold a model, the CPU first.
std::vector<ggml_backend_dev_t> slip_devices();

// The device of that name, the CPU for NULL. Throws SLIP_ERROR_DEVICE if there is none.
ggml_backend_dev_t slip_device_find(const char * name);

// Whether it is a graphics card; costs nothing, unlike a description, which asks it for its memory.
bool slip_device_is_gpu(ggml_backend_dev_t device);

// Graphs that CUDA captured, or evaluated node by node where others are launches of captured ones, since the process began;
// 0 of other devices.
int64_t slip_device_graphs_built(ggml_backend_dev_t device);

// Whether it may capture graphs.
bool slip_device_captures_graphs(ggml_backend_dev_t device);

slip_device slip_device_describe(ggml_backend_dev_t device);

// Throws SLIP_ERROR_DEVICE, naming the operation, if the backend lacks one that the graph needs to do `what`.
void slip_device_check(ggml_backend_t backend, ggml_cgraph * graph, const char * what, const char * remedy);
