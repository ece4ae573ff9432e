#include "train/checkpoint/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "hash/blake3.h"

namespace assay::checkpoint {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{8} << 20;
// Large enough to keep the disk busy, small enough to wait for.
constexpr std::int64_t kWindowBytes = std::int64_t{64} << 20;

std::string_view hint_for(int errno_value) {
  switch (errno_value) {
    case ENOSPC:
      return "the disk is full: free space, or keep fewer checkpoints";
    case EDQUOT:
      return "the disk quota is used up: free space, or keep fewer checkpoints";
    case EROFS:
    case EACCES:
    case EPERM:
      return "the checkpoint folder must be writable";
    case ENOENT:
    case ENOTDIR:
    case ESTALE:
      return "the checkpoint folder is gone; create it again or choose another";
    case EIO:
      return "the disk is failing: choose another";
    case EFBIG:
      return "the file system does not allow files this large: lower the shard limit";
    default:
      return "";
  }
}

}  // namespace

base::Error file_error(const std::string& where, std::string_view begin_startup_part,
                       int errno_value) {
  return base::system_error(where, begin_startup_part, errno_value,
                            std::string(hint_for(errno_value)));
}

base::Result<OutputFile> OutputFile::create(const std::filesystem::path& path,
                                            std::int64_t expected_bytes) {
  base::UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!fd.valid()) return base::fail(file_error(path.string(), "cannot create", errno));
  if (expected_bytes > 0 && ::fallocate(fd.get(), FALLOC_FL_KEEP_SIZE, 0, expected_bytes) != 0 &&
      (errno == ENOSPC || errno == EDQUOT || errno == EFBIG)) {
    return base::fail(file_error(path.string(), "cannot write", errno));
  }
  return OutputFile(path, std::move(fd));
}

base::Result<void> OutputFile::write(std::span<const std::byte> data) {
  while (!data.empty()) {
    const auto piece = data.first(std::min(data.size(), kPieceBytes));
    const ssize_t count = ::write(fd_.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return base::fail(file_error(path_.string(), "cannot write", errno));
    hash_->add(piece.first(static_cast<std::size_t>(count)));
    data = data.subspan(static_cast<std::size_t>(count));
    written_ += count;
    send_to_disk();
  }
  return {};
}

// Write errors are kept by the kernel and reported by fsync.
void OutputFile::send_to_disk() {
  while (written_ - sent_ >= kWindowBytes) {
    ::sync_file_range(fd_.get(), sent_, kWindowBytes, SYNC_FILE_RANGE_WRITE);
    sent_ += kWindowBytes;
    // Two windows stay in flight; waiting for the one before them bounds the dirty pages.
    if (sent_ - dropped_ <= 2 * kWindowBytes) continue;
    ::sync_file_range(
        fd_.get(), dropped_, kWindowBytes,
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER);
    ::posix_fadvise(fd_.get(), dropped_, kWindowBytes, POSIX_FADV_DONTNEED);
    dropped_ += kWindowBytes;
  }
}

base::Result<FileRecord> OutputFile::finish() {
  if (::fsync(fd_.get()) != 0) {
    return base::fail(file_error(path_.string(), "cannot write to the disk", errno));
  }
  if (written_ >= kWindowBytes) ::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
  // Network file systems report failed writes only at close.
  if (::close(fd_.release()) != 0 && errno != EINTR) {
    return base::fail(file_error(path_.string(), "cannot write to the disk", errno));
  }
  return FileRecord{path_.filename().string(), written_, hash_->finish()};
}

base::Result<FileRecord> write_small_file(const std::filesystem::path& path,
                                          const std::string& text) {
  ASSAY_TRY(OutputFile file, OutputFile::create(path, static_cast<std::int64_t>(text.size())));
  ASSAY_TRY_VOID(file.write(std::as_bytes(std::span(text))));
  return file.finish();
}

base::Result<void> sync_folder(const std::filesystem::path& folder) {
  const base::UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return base::fail(file_error(folder.string(), "cannot open", errno));
  // Some file systems have no fsync for folders.
  if (::fsync(fd.get()) != 0 && errno != EINVAL && errno != EBADF) {
    return base::fail(file_error(folder.string(), "cannot write to the disk", errno));
  }
  return {};
}

StreamHash::StreamHash() : thread_([this] { hash_all(); }) {}

StreamHash::~StreamHash() {
  {
    const std::lock_guard lock(mutex_);
    abandoned_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void StreamHash::add(std::span<const std::byte> data) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(data);
  }
  changed_.notify_one();
}

hash::Digest StreamHash::finish() {
  {
    const std::lock_guard lock(mutex_);
    complete_ = true;
  }
  changed_.notify_one();
  thread_.join();
  return digest_;
}

void StreamHash::hash_all() {
  hash::Hasher hasher;
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return abandoned_ || complete_ || !waiting_.empty(); });
    if (abandoned_) return;
    if (waiting_.empty()) break;  // and complete
    const std::span<const std::byte> next = waiting_.front();
    waiting_.pop_front();
    lock.unlock();
    hasher.update(next);
    lock.lock();
  }
  digest_ = hasher.finish();
}

}  // namespace assay::checkpoint
