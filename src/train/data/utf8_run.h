// The length of the valid UTF-8 at the start of a text. Invalid bytes become single-byte words.
#pragma once

#include <cstddef>
#include <string_view>

namespace assay::data {

struct Utf8Run {
  std::size_t size;  // bytes of valid UTF-8 from the start
  bool cut;          // the rest is an incomplete character at the end of the text
};

Utf8Run utf8_run(std::string_view text);

}  // namespace assay::data
