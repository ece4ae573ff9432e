// The tests' oracle: Debian's b3sum, a separate implementation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace assay::hash::testing {

// Pseudo-random bytes, the same in every run.
std::vector<std::byte> noise(std::size_t size, std::uint64_t seed = 1);

void write_file(const std::filesystem::path& path, std::span<const std::byte> data);

// What b3sum prints for the files, in hexadecimal and in order; one process for all of them.
std::vector<std::string> b3sum(std::span<const std::filesystem::path> files);
std::string b3sum(const std::filesystem::path& file);
// The same of bytes in memory: several inputs, one process.
std::vector<std::string> b3sum(std::span<const std::span<const std::byte>> inputs);

}  // namespace assay::hash::testing
