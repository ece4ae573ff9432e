// Symbols of loaded libraries, read from their own tables instead of through dlsym, which would set
// dlerror and may be interposed by other libraries.
#pragma once

#include <cstdint>

namespace assay::gpu {

struct Library {
  std::uintptr_t base = 0;
  const char* path = "";
  const char* soname = "";
  const char* texts = nullptr;
  const void* symbols = nullptr;
  const std::uint32_t* gnu_hashes = nullptr;
  const std::uint32_t* hashes = nullptr;

  // The function's address, or null.
  [[nodiscard]] void* find(const char* name) const;
};

// The first loaded library of this soname.
bool find_library(const char* soname, Library& found);
// The function of this name in the first library loaded after this one. Calls nothing: it is needed
// before a sanitizer, which intercepts library functions, is initialized.
void* find_after_us(const char* name);

inline bool same(const char* one, const char* other) {
  for (; *one != 0 && *one == *other; ++one) ++other;
  return *one == *other;
}

}  // namespace assay::gpu
