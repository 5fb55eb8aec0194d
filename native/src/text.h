// Text into the fixed fields of the C structs.

#pragma once

#include <cstring>
#include <string_view>

// As much of `text` as fits, ended by 0, without half a character of UTF-8 at its end. Takes no memory: it also says that
// there is none.
template <size_t N> void slip_copy_text(char (&to)[N], std::string_view text) {
    size_t n = text.size();
    if (n >= N) {
        for (n = N - 1; n > 0 && (text[n] & 0xC0) == 0x80; --n) {
        }
    }
    std::memcpy(to, text.data(), n);
    to[n] = 0;
}
