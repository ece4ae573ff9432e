#include "hash/testing/oracle.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "base/testing/temp_dir.h"

namespace assay::hash::testing {

std::vector<std::byte> noise(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> data(size);
  std::uint64_t state = seed * 0x9E3779B97F4A7C15U + 1;
  for (std::byte& byte : data) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::byte>(state >> 56);
  }
  return data;
}

void write_file(const std::filesystem::path& path, std::span<const std::byte> data) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(reinterpret_cast<const char*>(data.data()),
               static_cast<std::streamsize>(data.size()));
  if (!stream.flush()) throw std::runtime_error("cannot write " + path.string());
}

std::vector<std::string> b3sum(std::span<const std::filesystem::path> files) {
  const base::testing::TempDir directory;
  const auto list = (directory.path() / "list").string();
  {
    std::ofstream stream(list);
    for (const auto& file : files) stream << file.string() << '\n';
  }
  std::FILE* pipe = ::popen(("xargs -a '" + list + "' b3sum --no-names").c_str(), "r");
  std::vector<std::string> digests;
  std::array<char, 128> line{};
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
    digests.emplace_back(line.data(), 64);
  }
  if (::pclose(pipe) != 0 || digests.size() != files.size()) {
    throw std::runtime_error("b3sum failed; scripts/setup installs it");
  }
  return digests;
}

std::string b3sum(const std::filesystem::path& file) {
  return b3sum(std::span(&file, 1)).front();
}

std::vector<std::string> b3sum(std::span<const std::span<const std::byte>> inputs) {
  const base::testing::TempDir directory;
  std::vector<std::filesystem::path> files;
  for (const auto input : inputs) {
    files.push_back(directory.path() / fmt::format("{}", files.size()));
    write_file(files.back(), input);
  }
  return b3sum(files);
}

}  // namespace assay::hash::testing
