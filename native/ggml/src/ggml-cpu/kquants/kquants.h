#pragma once

#include "ggml-backend.h"
#include "ggml-cpu-impl.h" // MSVC names neither FMA nor F16C: it says what AVX2 implies

// A buffer type for Q4_K, Q5_K, Q6_K and Q8_0 weights, where the processor can take dot products of bytes.
#if defined(__AVX512VNNI__) || (defined(__AVX2__) && defined(__FMA__) && defined(__F16C__))
#define GGML_USE_CPU_KQUANTS
ggml_backend_buffer_type_t ggml_backend_cpu_kquants_buffer_type(void);
#endif

#ifdef __cplusplus
extern "C" {
#endif

// By one thread, before others come to share the product: what comes before the weights. `before`, or null: the node
// that was computed last, whose work buffer is as it left it. False: nothing was done.
bool ggml_cpu_kquants_prepare(const struct ggml_compute_params * params, const struct ggml_tensor * op, const struct ggml_tensor * before);

#ifdef __cplusplus
}
#endif
