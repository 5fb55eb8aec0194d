// What a file of this architecture lacks and can only be one thing: put in, and said.

#pragma once

#include "gguf_file.h"

#include "llama.h"

#include <string>
#include <vector>

class slip_repairs {
public:
    // Throws SLIP_ERROR_FILE for what is lacking and cannot be known.
    explicit slip_repairs(const slip_gguf_file & file);

    // For llama_model_params; valid as long as this object. NULL if nothing is put in.
    const llama_model_kv_override * overrides() const { return told_.empty() ? nullptr : overrides_.data(); }

    // In sentences; empty if the file lacks nothing.
    const std::string & told() const { return told_; }

private:
    std::vector<llama_model_kv_override> overrides_; // ends with an empty one
    std::string told_;
};
