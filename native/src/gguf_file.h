// What a GGUF file says of itself, read before any weight is loaded.

#pragma once

#include "ggml.h"
#include "gguf.h"

#include <cstdint>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

// The bytes of one tensor, read as they are wanted.
class slip_tensor_file {
public:
    slip_tensor_file(const std::string & path, uint64_t offset);

    // Bytes [at, at + n) of the tensor; throws SLIP_ERROR_FILE.
    void read(size_t at, size_t n, char * into);

private:
    std::string   path_;
    uint64_t      offset_;
    std::ifstream file_;
};

class slip_gguf_file {
public:
    // Of a model in parts, `path` is the first and its neighbours are found by their names. Throws
    // SLIP_ERROR_FILE if a file is missing, foreign or shorter than its header promises.
    explicit slip_gguf_file(const std::string & path);

    const std::string & path() const { return parts_.front().path; }

    // Throws SLIP_ERROR_MODEL, naming the other architecture and what to choose instead.
    void require_architecture(const std::string & architecture) const;

    bool has(const std::string & key) const;
    bool is_array(const std::string & key) const;
    bool has_tensor(const std::string & name) const;

    // Whole number, or truth as 0 and 1, under `key`. Throws SLIP_ERROR_FILE, naming the key, if it is missing or of
    // another type.
    int64_t number(const std::string & key) const;

    // Number under `key` as it is, finite and not below 0; throws like number().
    float real(const std::string & key) const;

    // Throws SLIP_ERROR_FILE, naming the key, unless all numbers under keys that begin with `prefix`, alone and in
    // arrays, are finite, not below 0, and if whole within 31 bits: no size or length of a model is anything else.
    void require_numbers(const std::string & prefix) const;

    // Calls `with` with shape and type of each tensor, in all parts.
    void each_tensor(const std::function<void(const ggml_tensor &)> & with) const;

    // Array of whole numbers under `key`; throws like number().
    std::vector<int64_t> numbers(const std::string & key) const;

    // Text under `key`, or "" if there is none.
    std::string text(const std::string & key) const;

    // Size of one dimension of a tensor; throws SLIP_ERROR_FILE if there is no such tensor.
    int64_t dimension(const std::string & tensor, int index) const;

    // Of all tensors, in all parts.
    uint64_t bytes() const;

    // Shape and type of a tensor, without data; throws like dimension().
    const ggml_tensor & tensor(const std::string & name) const;

    // A tensor's data; throws like dimension().
    slip_tensor_file open(const std::string & name) const;

    // Reads it into one of the same shape and type; throws like dimension().
    void read(const std::string & name, ggml_tensor * into) const;

    // Whether both files hold the same token list; throws like number().
    bool same_tokens(const slip_gguf_file & other) const;

    int64_t n_tokens() const; // throws like number()

    // Id of the token with that text, or -1; throws like number().
    int64_t find_token(const std::string & text) const;

private:
    struct part {
        explicit part(const std::string & path);

        std::string path;
        std::unique_ptr<ggml_context, void (*)(ggml_context *)> tensors;
        std::unique_ptr<gguf_context, void (*)(gguf_context *)> file;
    };

    void         open_other_parts();
    const part * part_with(const std::string & tensor) const; // NULL if none has it
    const gguf_context * keys() const { return parts_.front().file.get(); } // the first part has them all
    int64_t require(const std::string & key) const;
    void    require_type(const std::string & key, bool fits, const char * wanted) const;

    std::vector<part> parts_;
};
