// Debian packages behind files: DpkgIndex maps a path to its package, DpkgPackages collects the
// packages of a run.
//
// The index is cached until dpkg's files change, because reading its thousands of lists takes
// longer than most runs. It is one memory-mapped file:
//
//   Header | hashes: u64[slots] | owners: u32[slots] | texts: u32[2·packages] | text
//
// `hashes` and `owners` are an open-addressing hash table; `texts` has the offsets of each
// package's name and version in `text`, each terminated by NUL.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/run.h"

namespace assay::lineage {

class DpkgIndex {
 public:
  DpkgIndex() = default;  // for a machine without dpkg
  // `cache` is a folder, created if needed; if empty or not writable, the index stays in memory.
  static DpkgIndex open(const std::filesystem::path& dpkg, const std::filesystem::path& cache);

  [[nodiscard]] std::size_t packages() const;
  [[nodiscard]] std::optional<std::uint32_t> owner(std::string_view path) const;
  [[nodiscard]] std::string_view name(std::size_t package) const { return text(2 * package); }
  [[nodiscard]] std::string_view version(std::size_t package) const {
    return text(2 * package + 1);
  }

  // The state of dpkg's files that the index was built from.
  struct State {
    std::int64_t lists_ns = 0, status_ns = 0, status_size = 0, diversions_ns = 0;
    bool operator==(const State&) const = default;
  };
  struct Header {
    std::uint64_t magic = 0;
    State state;
    std::uint32_t slots = 0;  // a power of two
    std::uint32_t packages = 0;
    std::uint64_t text_size = 0;
  };

 private:
  // Checks that all parts lie within the bytes.
  bool use(std::string_view bytes);
  [[nodiscard]] std::string_view text(std::size_t at) const;

  std::shared_ptr<const void> owner_of_bytes_;  // the mapping or the string
  std::string_view bytes_;
  const Header* header_ = nullptr;
  const std::uint64_t* hashes_ = nullptr;
  const std::uint32_t* owners_ = nullptr;
  const std::uint32_t* texts_ = nullptr;
  std::string_view text_;
};

// Whether dpkg may own a file with this path, judged by the folder alone.
bool may_be_of_dpkg(std::string_view path);

class DpkgPackages {
 public:
  DpkgPackages(std::filesystem::path root, std::filesystem::path cache)
      : root_(std::move(root)), cache_(std::move(cache)) {}

  bool add(std::string_view path);  // returns whether some package owns it
  [[nodiscard]] std::vector<store::Package> packages() const;

 private:
  std::filesystem::path root_, cache_;
  bool opened_ = false;
  DpkgIndex index_;
  std::vector<bool> seen_;
};

}  // namespace assay::lineage
