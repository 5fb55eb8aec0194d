// Text into the fixed fields of the C structs.

#pragma once

#include <cstring>
#include <string>

// As much of `text` as fits, ended by 0, without half a character of UTF-8 at its end.
template <size_t N> void slip_copy_text(char (&to)[N], const std::string & text) {
    size_t n = text.size();
    if (n >= N) {
        for (n = N - 1; n > 0 && (text[n] & 0xC0) == 0x80; --n) {
        }
    }
    std::memcpy(to, text.data(), n);
    to[n] = 0;
}
