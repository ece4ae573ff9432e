// Hashes one file and prints what b3sum prints: our side of bench/hash.
//
//   hash_tool FILE [THREADS [copied]]      0 threads: all that may be used
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "hash/file.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print("{}\n", assay::hash::simd_level());
    return 0;
  }
  assay::hash::HashOptions options;
  if (argc > 2) options.threads = static_cast<unsigned>(std::atoi(argv[2]));
  if (argc > 3 && std::string_view(argv[3]) == "copied") {
    options.reading = assay::hash::ReadMethod::kCopied;
  }
  const auto hashed = assay::hash::hash_file(argv[1], options);
  if (!hashed) {
    fmt::print(stderr, "hash_tool: {}\n", hashed.error().line());
    return static_cast<int>(hashed.error().code);
  }
  fmt::print("{}  {}\n", hashed->digest.hex(), argv[1]);
}
