#include "train/data/shard_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/file.h"

namespace assay::data {
namespace {

constexpr std::size_t kWriteBytes = std::size_t{1} << 20;

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

ShardWriter::ShardWriter(std::filesystem::path path, std::string draft, base::UniqueFd file,
                         std::uint64_t vocabulary)
    : path_(std::move(path)), draft_(std::move(draft)), file_(std::move(file)) {
  header_.type = type_for(vocabulary);
  header_.vocabulary = vocabulary;
  buffer_.reserve(kWriteBytes + sizeof(std::uint32_t));
}

ShardWriter::ShardWriter(ShardWriter&& other) noexcept
    : path_(std::move(other.path_)),
      draft_(std::exchange(other.draft_, {})),
      file_(std::move(other.file_)),
      header_(other.header_),
      hasher_(std::move(other.hasher_)),
      buffer_(std::move(other.buffer_)) {}

ShardWriter::~ShardWriter() {
  if (!draft_.empty()) ::unlink(draft_.c_str());
}

base::Result<ShardWriter> ShardWriter::create(const std::filesystem::path& path,
                                              std::uint64_t vocabulary) {
  if (vocabulary == 0 || vocabulary > kMostVocabulary) {
    return base::fail(base::usage_error(
        path.string(),
        fmt::format("a vocabulary of {} is not between 1 and {}", vocabulary, kMostVocabulary)));
  }
  // The rename at the end would replace a device or pipe with a file.
  struct stat there {};
  if (::stat(path.c_str(), &there) == 0 && !S_ISREG(there.st_mode)) {
    return base::fail(
        base::usage_error(path.string(), "is not a regular file",
                          "a shard must be a regular file: its header is written last"));
  }
  std::string draft = fmt::format("{}.{}", path.string(), ::getpid());
  base::UniqueFd file(::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.valid()) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) {
      return base::fail(base::usage_error(path.string(), "the folder does not exist"));
    }
    return base::fail(base::system_error(path.string(), "cannot write", error));
  }
  ShardWriter writer(path, std::move(draft), std::move(file), vocabulary);
  // Reserves the header, which is written at the end.
  const std::array<std::byte, kHeaderBytes> blank{};
  if (!base::write_all(writer.file_.get(), as_text(blank))) {
    return base::fail(base::system_error(path.string(), "cannot write", errno));
  }
  return writer;
}

base::Result<void> ShardWriter::append(std::span<const std::uint32_t> tokens) {
  const std::size_t size = bytes_of(header_.type);
  for (const std::uint32_t token : tokens) {
    if (token >= header_.vocabulary) {
      return base::fail(base::usage_error(
          path_.string(), fmt::format("token {} is {}, outside the vocabulary of {}", header_.count,
                                      token, header_.vocabulary)));
    }
    // Little-endian: the low bytes come first.
    const auto* bytes = reinterpret_cast<const std::byte*>(&token);
    buffer_.insert(buffer_.end(), bytes, bytes + size);
    ++header_.count;
    if (buffer_.size() >= kWriteBytes) ASSAY_TRY_VOID(flush());
  }
  return {};
}

base::Result<void> ShardWriter::flush() {
  hasher_.update(buffer_);
  if (!base::write_all(file_.get(), as_text(buffer_))) {
    return base::fail(base::system_error(path_.string(), "cannot write", errno));
  }
  buffer_.clear();
  return {};
}

base::Result<ShardHeader> ShardWriter::finish() {
  ASSAY_TRY_VOID(flush());
  header_.digest = hasher_.finish();
  const auto bytes = encode_header(header_);
  // Synced before the rename: the name must not survive a power failure without the contents.
  const bool written =
      ::pwrite(file_.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()) &&
      ::fsync(file_.get()) == 0 && ::rename(draft_.c_str(), path_.c_str()) == 0;
  if (!written) return base::fail(base::system_error(path_.string(), "cannot write", errno));
  draft_.clear();
  return header_;
}

}  // namespace assay::data
