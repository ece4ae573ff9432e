// DpkgIndex: path -> package for everything dpkg has installed, as one mapped file:
//
//   Header | hashes: u64[slots] | owners: u32[slots] | texts: u32[2·packages] | text
//
// `hashes` and `owners` are an open hash table; `texts` are the offsets of each package's name and
// version in `text`, which ends each with a NUL. Made again when dpkg's files have changed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace assay::lineage {

class DpkgIndex {
 public:
  DpkgIndex() = default;  // of a machine without dpkg
  // `cache` is a folder, made if need be; empty, or when it cannot be written: in memory.
  static DpkgIndex open(const std::filesystem::path& dpkg, const std::filesystem::path& cache);

  [[nodiscard]] std::size_t packages() const;
  [[nodiscard]] std::optional<std::uint32_t> owner(std::string_view path) const;
  [[nodiscard]] std::string_view name(std::size_t package) const { return text(2 * package); }
  [[nodiscard]] std::string_view version(std::size_t package) const {
    return text(2 * package + 1);
  }

  // What the index is of: when and how large the files of dpkg were.
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

// The bytes of an index, from dpkg's own files; dpkg_index_build.cc.
std::string build_dpkg_index(const std::filesystem::path& dpkg, const DpkgIndex::State& state);

inline constexpr std::uint64_t kDpkgIndexMagic = 0x3130'5844'4941'5341U;  // "ASAIDX01"

// The hash of a path as the table has it: /bin, /lib and the like are what /usr/bin and /usr/lib
// are, since they are links on a merged system and dpkg's lists have either.
std::uint64_t dpkg_path_hash(std::string_view path);

}  // namespace assay::lineage
