// Of what ggml_backend_load_all_from_path() does, the part for one backend.

#pragma once

#include "ggml-backend.h"

#ifdef __cplusplus
extern "C" {
#endif

// Loads of lib<ggml-NAME-*> in that folder the one with the highest score on this machine, or else lib<ggml-NAME>.
// NULL if there is none that can be executed.
GGML_API ggml_backend_reg_t ggml_backend_load_best(const char * name, bool silent, const char * dir_path);

#ifdef __cplusplus
}
#endif
