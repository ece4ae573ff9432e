#include "train/data/documents/byte_source.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cerrno>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/unique_fd.h"

namespace assay::data {
namespace {

constexpr std::size_t kReadBytes = std::size_t{256} << 10;
// Frames made with --ultra --long=31 need a window of 2 GiB; `zstd` itself refuses them by default,
// too.
constexpr int kMostWindowBits = 27;

class PlainSource : public ByteSource {
 public:
  PlainSource(base::UniqueFd file, std::string where)
      : file_(std::move(file)), where_(std::move(where)) {}

  base::Result<std::size_t> read(std::span<char> buffer) override {
    std::size_t size = 0;
    while (size < buffer.size()) {
      const ssize_t count = ::read(file_.get(), buffer.data() + size, buffer.size() - size);
      if (count == 0) break;
      if (count > 0) size += static_cast<std::size_t>(count);
      if (count < 0 && errno != EINTR) {
        return base::fail(base::system_error(where_, "cannot read", errno));
      }
    }
    read_ += size;
    return size;
  }
  [[nodiscard]] std::uint64_t file_bytes() const override { return read_; }

 private:
  base::UniqueFd file_;
  std::string where_;
  std::uint64_t read_ = 0;
};

class StandardInput : public ByteSource {
 public:
  explicit StandardInput(const std::atomic<bool>* stop) : stop_(stop) {}

  base::Result<std::size_t> read(std::span<char> buffer) override {
    std::size_t size = 0;
    while (size < buffer.size() && (stop_ == nullptr || !*stop_)) {
      pollfd wait{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
      if (::poll(&wait, 1, kPollMs) <= 0) continue;
      const ssize_t count = ::read(STDIN_FILENO, buffer.data() + size, buffer.size() - size);
      if (count == 0) break;
      if (count > 0) size += static_cast<std::size_t>(count);
      // Another process that shares standard input may have made it non-blocking.
      if (count < 0 && errno != EINTR && errno != EAGAIN) {
        return base::fail(base::system_error("standard input", "cannot read", errno));
      }
    }
    read_ += size;
    return size;
  }
  [[nodiscard]] std::uint64_t file_bytes() const override { return read_; }

 private:
  static constexpr int kPollMs = 100;  // how soon a stop is noticed

  const std::atomic<bool>* stop_;
  std::uint64_t read_ = 0;
};

// Common to gzip and zstd: a part of the compressed file in memory.
class CompressedSource : public ByteSource {
 public:
  CompressedSource(std::unique_ptr<ByteSource> file, std::string where)
      : file_(std::move(file)), where_(std::move(where)) {}

  [[nodiscard]] std::uint64_t file_bytes() const override { return file_->file_bytes(); }

 protected:
  // False at the end of the file.
  base::Result<bool> refill() {
    ASSAY_TRY(size_, file_->read(part_));
    used_ = 0;
    return size_ > 0;
  }
  [[nodiscard]] base::Error damaged(const std::string& what) const {
    return base::usage_error(where_, what, "is the file complete?");
  }

  std::unique_ptr<ByteSource> file_;
  std::string where_;
  std::vector<char> part_ = std::vector<char>(kReadBytes);
  std::size_t size_ = 0;
  std::size_t used_ = 0;
};

class GzipSource : public CompressedSource {
 public:
  using CompressedSource::CompressedSource;
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;
  ~GzipSource() override {
    if (open_) inflateEnd(&stream_);
  }

  base::Result<std::size_t> read(std::span<char> buffer) override {
    std::size_t size = 0;
    while (size < buffer.size()) {
      if (used_ == size_) {
        ASSAY_TRY(const bool more, refill());
        if (!more && inside_) return base::fail(damaged("its gzip data ends too early"));
        if (!more) break;
      }
      if (!inside_) ASSAY_TRY_VOID(begin_member());
      stream_.next_in = reinterpret_cast<Bytef*>(part_.data() + used_);
      stream_.avail_in = static_cast<uInt>(size_ - used_);
      stream_.next_out = reinterpret_cast<Bytef*>(buffer.data() + size);
      stream_.avail_out = static_cast<uInt>(buffer.size() - size);
      const int outcome = ::inflate(&stream_, Z_NO_FLUSH);
      used_ = size_ - stream_.avail_in;
      size = buffer.size() - stream_.avail_out;
      if (outcome == Z_STREAM_END) {
        inside_ = false;  // another member may follow: gzip files can be concatenated
      } else if (outcome != Z_OK && outcome != Z_BUF_ERROR) {
        const char* why = stream_.msg != nullptr ? stream_.msg : "damaged";
        return base::fail(damaged(fmt::format("is not valid gzip: {}", why)));
      }
    }
    return size;
  }

 private:
  base::Result<void> begin_member() {
    // 16: a gzip header is expected.
    const int outcome = open_ ? inflateReset(&stream_) : inflateInit2(&stream_, 15 + 16);
    if (outcome != Z_OK) return base::fail(base::unfit_error(where_, "no memory to decompress it"));
    open_ = true;
    inside_ = true;
    return {};
  }

  z_stream stream_{};
  bool open_ = false;
  bool inside_ = false;  // in the middle of a member
};

class ZstdSource : public CompressedSource {
 public:
  ZstdSource(std::unique_ptr<ByteSource> file, std::string where)
      : CompressedSource(std::move(file), std::move(where)) {
    ZSTD_DCtx_setParameter(context_.get(), ZSTD_d_windowLogMax, kMostWindowBits);
  }

  base::Result<std::size_t> read(std::span<char> buffer) override {
    ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
    while (out.pos < out.size) {
      if (used_ == size_) {
        ASSAY_TRY(const bool more, refill());
        if (!more && inside_) return base::fail(damaged("its zstd data ends too early"));
        if (!more) break;
      }
      ZSTD_inBuffer in{part_.data(), size_, used_};
      const std::size_t left = ZSTD_decompressStream(context_.get(), &out, &in);
      used_ = in.pos;
      if (ZSTD_isError(left) != 0) {
        return base::fail(damaged(fmt::format("is not valid zstd: {}", ZSTD_getErrorName(left))));
      }
      inside_ = left != 0;
    }
    return out.pos;
  }

 private:
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> context_{ZSTD_createDCtx()};
  bool inside_ = false;  // in the middle of a frame
};

}  // namespace

base::Result<std::unique_ptr<ByteSource>> open_bytes(const InputFile& file,
                                                     const std::atomic<bool>* stop) {
  if (file.path == "-") return std::make_unique<StandardInput>(stop);
  ASSAY_TRY(base::UniqueFd fd, base::open_regular(file.path));
  auto plain = std::make_unique<PlainSource>(std::move(fd), file.path);
  switch (file.compression) {
    case Compression::kGzip:
      return std::make_unique<GzipSource>(std::move(plain), file.path);
    case Compression::kZstd:
      return std::make_unique<ZstdSource>(std::move(plain), file.path);
    case Compression::kNone:
      break;
  }
  return plain;
}

}  // namespace assay::data
