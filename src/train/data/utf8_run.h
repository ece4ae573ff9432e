// How much of some text is UTF-8, quickly: all of it is walked once on the way to its words.
#pragma once

#include <cstddef>
#include <string_view>

namespace assay::data {

struct Utf8Run {
  std::size_t size;  // valid from the beginning
  bool cut;          // what follows is the beginning of a character, and the text ends in it
};

Utf8Run utf8_run(std::string_view text);

}  // namespace assay::data
