#include "train/data/shard_writer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
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

tl::unexpected<base::Error> cannot_write(const std::filesystem::path& path) {
  return base::fail(base::system_error(path.string(), "cannot write", errno));
}

base::Result<void> check_target(const std::filesystem::path& path, std::uint64_t vocabulary) {
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
  return {};
}

base::Result<base::UniqueFd> open_draft(const std::filesystem::path& path, const std::string& draft,
                                        int flags) {
  base::UniqueFd file(::open(draft.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | flags, 0666));
  if (file.valid()) return file;
  const int error = errno;
  if (error == ENOENT || error == ENOTDIR) {
    return base::fail(base::usage_error(path.string(), "the folder does not exist"));
  }
  return base::fail(base::system_error(path.string(), "cannot write", error));
}

// Calls `use` with the file's bytes from `at` on, `count` of them, a part at a time.
template <class Use>
base::Result<void> read_range(int fd, std::uint64_t at, std::uint64_t count,
                              const std::filesystem::path& path, const Use& use) {
  std::vector<std::byte> part(kWriteBytes);
  while (count > 0) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(count, part.size()));
    ASSAY_TRY(const std::size_t got,
              base::read_at(fd, path.string(), at, std::span(part).first(wanted)));
    if (got < wanted) return base::fail(base::system_error(path.string(), "cannot read", EIO));
    ASSAY_TRY_VOID(use(std::span<const std::byte>(part).first(got)));
    at += got;
    count -= got;
  }
  return {};
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
      kept_(other.kept_),
      file_(std::move(other.file_)),
      header_(other.header_),
      hasher_(std::move(other.hasher_)),
      buffer_(std::move(other.buffer_)),
      definition_(std::move(other.definition_)),
      starts_file_(std::move(other.starts_file_)),
      starts_(std::move(other.starts_)),
      document_begins_(other.document_begins_) {}

ShardWriter::~ShardWriter() {
  if (draft_.empty() || kept_) return;
  ::unlink(draft_.c_str());
  if (header_.documents) ::unlink(documents_draft().c_str());
}

base::Result<ShardWriter> ShardWriter::create(const std::filesystem::path& path,
                                              std::uint64_t vocabulary) {
  ASSAY_TRY_VOID(check_target(path, vocabulary));
  std::string draft = fmt::format("{}.{}", path.string(), ::getpid());
  ASSAY_TRY(base::UniqueFd file, open_draft(path, draft, O_TRUNC));
  ShardWriter writer(path, std::move(draft), std::move(file), vocabulary);
  // Reserves the header, which is written at the end.
  const std::array<std::byte, kHeaderBytes> blank{};
  if (!base::write_all(writer.file_.get(), as_text(blank))) return cannot_write(path);
  return writer;
}

base::Result<ShardWriter> ShardWriter::create(const std::filesystem::path& path,
                                              std::uint64_t vocabulary, ShardDocuments documents) {
  return resume(path, vocabulary, std::move(documents), {.digest = hash::Hasher().finish()});
}

base::Result<ShardWriter> ShardWriter::resume(const std::filesystem::path& path,
                                              std::uint64_t vocabulary, ShardDocuments documents,
                                              const ShardProgress& progress) {
  ASSAY_TRY_VOID(check_target(path, vocabulary));
  std::string draft = path.string() + ".partial";
  ASSAY_TRY(base::UniqueFd file, open_draft(path, draft, 0));
  // Held until the file is closed; the kernel releases it when a process is killed.
  struct stat locked {};
  struct stat named {};
  // The draft may have been completed, and thus renamed, between being opened and locked.
  const bool ours = ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 &&
                    ::fstat(file.get(), &locked) == 0 && ::stat(draft.c_str(), &named) == 0 &&
                    locked.st_ino == named.st_ino;
  if (!ours) {
    return base::fail(base::usage_error(path.string(), "is being written by another process",
                                        "wait for it, or choose another output"));
  }
  ShardWriter writer(path, std::move(draft), std::move(file), vocabulary);
  // A resume that fails must not destroy the drafts.
  const bool kept = std::exchange(writer.kept_, progress.tokens > 0);
  ASSAY_TRY_VOID(writer.open_documents(std::move(documents), 0));
  ASSAY_TRY_VOID(writer.recover(progress));
  writer.kept_ = kept;
  return writer;
}

base::Result<void> ShardWriter::open_documents(ShardDocuments documents, int flags) {
  header_.documents.emplace();
  header_.documents->bos = documents.bos;
  header_.documents->eos = documents.eos;
  header_.documents->definition_bytes = documents.definition.size();
  if (!documents.definition.empty()) {
    header_.documents->tokenizer = hash::blake3(std::as_bytes(std::span(documents.definition)));
  }
  definition_ = std::move(documents.definition);
  ASSAY_TRY(starts_file_, open_draft(path_, documents_draft(), flags));
  return {};
}

// Truncates the drafts to the progress, and hashes the tokens again.
base::Result<void> ShardWriter::recover(const ShardProgress& progress) {
  const std::uint64_t bytes = progress.tokens * bytes_of(header_.type);
  const std::uint64_t starts_bytes = progress.documents * sizeof(std::uint64_t);
  ASSAY_TRY(const struct stat tokens, base::regular_status(file_.get(), draft_));
  ASSAY_TRY(const struct stat starts, base::regular_status(starts_file_.get(), draft_));
  const auto damaged = [&] {
    return base::fail(base::failed_error(draft_, "is not what was written",
                                         "remove it to start from the beginning"));
  };
  if (progress.tokens > 0 && (static_cast<std::uint64_t>(tokens.st_size) < kHeaderBytes + bytes ||
                              static_cast<std::uint64_t>(starts.st_size) < starts_bytes)) {
    return damaged();
  }
  ASSAY_TRY_VOID(read_range(file_.get(), kHeaderBytes, bytes, path_, [&](auto part) {
    hasher_.update(part);
    return base::Result<void>{};
  }));
  if (hasher_.finish() != progress.digest) return damaged();
  header_.count = progress.tokens;
  header_.documents->count = progress.documents;
  const bool cut = ::ftruncate(file_.get(), static_cast<off_t>(kHeaderBytes + bytes)) == 0 &&
                   ::ftruncate(starts_file_.get(), static_cast<off_t>(starts_bytes)) == 0 &&
                   ::lseek(file_.get(), 0, SEEK_END) >= 0 &&
                   ::lseek(starts_file_.get(), 0, SEEK_END) >= 0;
  if (!cut) return cannot_write(path_);
  return {};
}

base::Result<void> ShardWriter::append(std::span<const std::uint32_t> tokens) {
  if (tokens.empty()) return {};
  if (std::exchange(document_begins_, false) && header_.documents) {
    starts_.push_back(header_.count);
    ++header_.documents->count;
  }
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
  if (!base::write_all(file_.get(), as_text(buffer_))) return cannot_write(path_);
  buffer_.clear();
  if (!starts_.empty()) {
    if (!base::write_all(starts_file_.get(), as_text(std::as_bytes(std::span(starts_))))) {
      return cannot_write(path_);
    }
    starts_.clear();
  }
  return {};
}

base::Result<ShardProgress> ShardWriter::progress() {
  ASSAY_TRY_VOID(flush());
  return ShardProgress{header_.count, header_.documents ? header_.documents->count : 0,
                       hasher_.finish()};
}

// After the tokens: the list of documents and the tokenizer's definition.
base::Result<void> ShardWriter::write_documents() {
  hash::Hasher hasher;
  const auto put = [&](std::span<const std::byte> bytes) -> base::Result<void> {
    hasher.update(bytes);
    if (!base::write_all(file_.get(), as_text(bytes))) return cannot_write(path_);
    return {};
  };
  const std::uint64_t end = kHeaderBytes + header_.count * bytes_of(header_.type);
  const std::array<std::byte, 8> padding{};
  ASSAY_TRY_VOID(put(std::span(padding).first(header_.documents_at() - end)));
  ASSAY_TRY_VOID(read_range(starts_file_.get(), 0, header_.documents->count * sizeof(std::uint64_t),
                            path_, put));
  ASSAY_TRY_VOID(put(std::as_bytes(std::span(definition_))));
  header_.documents->digest = hasher.finish();
  return {};
}

base::Result<ShardHeader> ShardWriter::finish() {
  ASSAY_TRY_VOID(flush());
  header_.digest = hasher_.finish();
  if (header_.documents) ASSAY_TRY_VOID(write_documents());
  const auto bytes = encode_header(header_);
  // Synced before the rename: the name must not survive a power failure without the contents.
  const bool written =
      ::pwrite(file_.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()) &&
      ::fsync(file_.get()) == 0 && ::rename(draft_.c_str(), path_.c_str()) == 0;
  if (!written) return cannot_write(path_);
  if (header_.documents) ::unlink(documents_draft().c_str());
  draft_.clear();
  return header_;
}

}  // namespace assay::data
