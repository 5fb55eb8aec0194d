#pragma once

#include "ggml.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ggml_compute_params;

// Flash attention over F32 or F16 keys and values. False: not one of ours, nothing was done.
bool   ggml_cpu_attention(const struct ggml_compute_params * params, struct ggml_tensor * dst);
bool   ggml_cpu_attention_prepare(const struct ggml_compute_params * params, const struct ggml_tensor * op); // before others come to share it
size_t ggml_cpu_attention_work_size(int n_threads, const struct ggml_tensor * dst);

#ifdef __cplusplus
}
#endif
