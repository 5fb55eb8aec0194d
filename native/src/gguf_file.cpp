#include "gguf_file.h"

#include "failure.h"
#include "log.h"

#include "ggml-backend.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

static const char * k_tokens = "tokenizer.ggml.tokens";

static int64_t whole_number(const void * data, int64_t index, gguf_type type) {
    switch (type) {
        case GGUF_TYPE_UINT8:  return static_cast<const uint8_t  *>(data)[index];
        case GGUF_TYPE_INT8:   return static_cast<const int8_t   *>(data)[index];
        case GGUF_TYPE_UINT16: return static_cast<const uint16_t *>(data)[index];
        case GGUF_TYPE_INT16:  return static_cast<const int16_t  *>(data)[index];
        case GGUF_TYPE_UINT32: return static_cast<const uint32_t *>(data)[index];
        case GGUF_TYPE_INT32:  return static_cast<const int32_t  *>(data)[index];
        case GGUF_TYPE_UINT64: return static_cast<int64_t>(static_cast<const uint64_t *>(data)[index]);
        case GGUF_TYPE_INT64:  return static_cast<const int64_t  *>(data)[index];
        case GGUF_TYPE_BOOL:   return static_cast<const int8_t   *>(data)[index] != 0;
        default: return 0; // see is_whole
    }
}

static bool is_whole(gguf_type type) {
    return type != GGUF_TYPE_FLOAT32 && type != GGUF_TYPE_FLOAT64 && type != GGUF_TYPE_STRING && type != GGUF_TYPE_ARRAY;
}

slip_gguf_file::slip_gguf_file(const std::string & path, const std::string & architecture) :
    path_(path), tensors_(nullptr, ggml_free), file_(nullptr, gguf_free) {
    const auto fs_path = std::filesystem::u8path(path);
    std::error_code error;
    const auto bytes = std::filesystem::file_size(fs_path, error);
    if (error) {
        throw slip_failure(SLIP_ERROR_FILE, "`" + path + "` cannot be opened: " + error.message() + ".",
            "Check the path, or convert the model again.");
    }

    char magic[4] = {};
    std::ifstream(fs_path, std::ios::binary).read(magic, sizeof(magic));
    if (std::memcmp(magic, "GGUF", sizeof(magic)) != 0) {
        throw slip_failure(SLIP_ERROR_FILE, "`" + path + "` is not a GGUF file.",
            "Choose a file that Slipstream converted, or convert the model again.");
    }

    ggml_context * tensors = nullptr;
    slip_log_take_errors();
    file_.reset(gguf_init_from_file(path.c_str(), { /*.no_alloc =*/ true, /*.ctx =*/ &tensors }));
    tensors_.reset(tensors);
    if (!file_) {
        throw slip_failure(SLIP_ERROR_FILE,
            "The header of `" + path + "` cannot be read: " + slip_log_take_errors() + ".",
            "The file is incomplete or damaged: convert the model again.");
    }

    size_t end = gguf_get_data_offset(file_.get());
    for (int64_t i = 0; i < gguf_get_n_tensors(file_.get()); ++i) {
        end = std::max(end, gguf_get_data_offset(file_.get()) +
            gguf_get_tensor_offset(file_.get(), i) + gguf_get_tensor_size(file_.get(), i));
    }
    if (bytes < end) {
        throw slip_failure(SLIP_ERROR_FILE,
            "`" + path + "` is incomplete: it has " + std::to_string(bytes) + " bytes of " + std::to_string(end) + ".",
            "Convert or download it again.");
    }

    const std::string found = text("general.architecture");
    if (found != architecture) {
        throw slip_failure(SLIP_ERROR_MODEL,
            "`" + path + "` holds a model of architecture `" + found + "`; `" + architecture + "` is needed here.",
            architecture == "dflash" ? "Choose the DFlash drafter of this target." : "Choose a Qwen3.5 model.");
    }
}

int64_t slip_gguf_file::require(const std::string & key) const {
    const int64_t id = gguf_find_key(file_.get(), key.c_str());
    if (id < 0) {
        throw slip_failure(SLIP_ERROR_FILE, "`" + path_ + "` lacks the key `" + key + "`.", "Convert the model again.");
    }
    return id;
}

// ggml aborts the process where a value is asked for as another type than it has.
void slip_gguf_file::require_type(const std::string & key, bool fits, const char * wanted) const {
    if (!fits) {
        const gguf_type type = gguf_get_kv_type(file_.get(), require(key));
        throw slip_failure(SLIP_ERROR_FILE,
            "`" + path_ + "` holds `" + key + "` as " + gguf_type_name(type) + "; it has to be " + wanted + ".", "Convert the model again.");
    }
}

bool slip_gguf_file::has(const std::string & key) const {
    return gguf_find_key(file_.get(), key.c_str()) >= 0;
}

float slip_gguf_file::real(const std::string & key) const {
    const int64_t id = require(key);
    return gguf_get_kv_type(file_.get(), id) == GGUF_TYPE_FLOAT32 ? gguf_get_val_f32(file_.get(), id) : static_cast<float>(number(key));
}

int64_t slip_gguf_file::number(const std::string & key) const {
    const int64_t id = require(key);
    const gguf_type type = gguf_get_kv_type(file_.get(), id);
    require_type(key, is_whole(type), "a whole number");
    return whole_number(gguf_get_val_data(file_.get(), id), 0, type);
}

std::vector<int64_t> slip_gguf_file::numbers(const std::string & key) const {
    const int64_t id = require(key);
    require_type(key, gguf_get_kv_type(file_.get(), id) == GGUF_TYPE_ARRAY && is_whole(gguf_get_arr_type(file_.get(), id)),
        "an array of whole numbers");
    std::vector<int64_t> out(gguf_get_arr_n(file_.get(), id));
    for (size_t i = 0; i < out.size(); ++i) {
        out[i] = whole_number(gguf_get_arr_data(file_.get(), id), i, gguf_get_arr_type(file_.get(), id));
    }
    return out;
}

std::string slip_gguf_file::text(const std::string & key) const {
    const int64_t id = gguf_find_key(file_.get(), key.c_str());
    const bool there = id >= 0 && gguf_get_kv_type(file_.get(), id) == GGUF_TYPE_STRING;
    return there ? gguf_get_val_str(file_.get(), id) : "";
}

bool slip_gguf_file::has_tensor(const std::string & name) const {
    return ggml_get_tensor(tensors_.get(), name.c_str()) != nullptr;
}

const ggml_tensor & slip_gguf_file::tensor(const std::string & name) const {
    const ggml_tensor * found = ggml_get_tensor(tensors_.get(), name.c_str());
    if (!found) {
        throw slip_failure(SLIP_ERROR_FILE, "`" + path_ + "` lacks the tensor `" + name + "`.", "Convert the model again.");
    }
    return *found;
}

int64_t slip_gguf_file::dimension(const std::string & name, int index) const {
    return tensor(name).ne[index];
}

void slip_gguf_file::read(const std::string & name, ggml_tensor * into) const {
    const size_t size = ggml_nbytes(&tensor(name));
    std::ifstream file(std::filesystem::u8path(path_), std::ios::binary);
    file.seekg(static_cast<std::streamoff>(gguf_get_data_offset(file_.get()) +
        gguf_get_tensor_offset(file_.get(), gguf_find_tensor(file_.get(), name.c_str()))));
    std::vector<char> part(std::min<size_t>(size, 16 << 20));
    for (size_t done = 0; done < size; done += part.size()) {
        const size_t n = std::min(part.size(), size - done);
        if (!file.read(part.data(), static_cast<std::streamsize>(n))) {
            throw slip_failure(SLIP_ERROR_FILE, "`" + path_ + "` cannot be read.", "Convert the model again.");
        }
        ggml_backend_tensor_set(into, part.data(), done, n);
    }
}

int64_t slip_gguf_file::n_tokens() const {
    const int64_t id = require(k_tokens);
    require_type(k_tokens, gguf_get_kv_type(file_.get(), id) == GGUF_TYPE_ARRAY && gguf_get_arr_type(file_.get(), id) == GGUF_TYPE_STRING,
        "an array of texts");
    return gguf_get_arr_n(file_.get(), id);
}

bool slip_gguf_file::same_tokens(const slip_gguf_file & other) const {
    if (n_tokens() != other.n_tokens()) {
        return false;
    }
    const int64_t mine = require(k_tokens), theirs = other.require(k_tokens);
    for (int64_t i = 0; i < n_tokens(); ++i) {
        if (std::strcmp(gguf_get_arr_str(file_.get(), mine, i), gguf_get_arr_str(other.file_.get(), theirs, i)) != 0) {
            return false;
        }
    }
    return true;
}
