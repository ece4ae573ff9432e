#include "train/data/tokenize.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/unique_fd.h"
#include "train/data/shard_writer.h"

namespace assay::data {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kReadBytes = std::size_t{1} << 20;

// Reads up to buffer.size() bytes; 0 at the end. Standard input may be non-blocking if another
// process that shares it made it so.
base::Result<std::size_t> read_some(int fd, const std::string& where, std::string& buffer) {
  while (true) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count >= 0) return static_cast<std::size_t>(count);
    const int error = errno;
    if (error == EAGAIN) {
      pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
      ::poll(&wait, 1, -1);
    } else if (error != EINTR) {
      return base::fail(base::system_error(where, "cannot read", error));
    }
  }
}

class DocumentWriter {
 public:
  DocumentWriter(const Tokenizer& tokenizer, const TokenizeRequest& request, ShardWriter& shard)
      : encoder_(tokenizer.encoder()), request_(request), shard_(shard) {}

  base::Result<void> add(const std::string& file) {
    if (file == "-") return add_open(STDIN_FILENO, "standard input");
    ASSAY_TRY(const base::UniqueFd fd, base::open_regular(file));
    return add_open(fd.get(), file);
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  base::Result<void> add_open(int fd, const std::string& where) {
    const auto named = [&](base::Result<void> outcome) {
      if (!outcome && outcome.error().where.empty()) outcome.error().where = where;
      return outcome;
    };
    while (true) {
      ASSAY_TRY(const std::size_t count, read_some(fd, where, buffer_));
      if (count == 0) break;
      tokens_.clear();
      ASSAY_TRY_VOID(named(encoder_->feed(std::string_view(buffer_).substr(0, count), tokens_)));
      ASSAY_TRY_VOID(shard_.append(tokens_));
      bytes_ += count;
      if (request_.progress) request_.progress(static_cast<std::int64_t>(count));
    }
    tokens_.clear();
    ASSAY_TRY_VOID(named(encoder_->finish(tokens_)));
    if (request_.append_eos) tokens_.push_back(*request_.append_eos);
    return shard_.append(tokens_);
  }

  std::unique_ptr<Encoder> encoder_;
  const TokenizeRequest& request_;
  ShardWriter& shard_;
  std::string buffer_ = std::string(kReadBytes, '\0');
  std::vector<TokenId> tokens_;
  std::uint64_t bytes_ = 0;
};

}  // namespace

base::Result<TokenizeSummary> tokenize_files(const Tokenizer& tokenizer,
                                             const TokenizeRequest& request) {
  for (const std::string& file : request.files) {
    std::error_code ignored;
    if (file != "-" && fs::equivalent(file, request.output, ignored)) {
      return base::fail(base::usage_error(
          request.output.string(), "is both a document and the output", "choose another output"));
    }
  }
  const std::uint64_t with_eos = request.append_eos ? std::uint64_t{*request.append_eos} + 1 : 0;
  ASSAY_TRY(ShardWriter shard,
            ShardWriter::create(request.output, std::max(tokenizer.vocabulary(), with_eos)));
  DocumentWriter writer(tokenizer, request, shard);
  for (const std::string& file : request.files) ASSAY_TRY_VOID(writer.add(file));
  ASSAY_TRY(const ShardHeader header, shard.finish());
  return TokenizeSummary{header, writer.bytes()};
}

std::optional<std::int64_t> total_bytes(const std::vector<std::string>& files) {
  std::int64_t total = 0;
  for (const std::string& file : files) {
    std::error_code error;
    const auto size = fs::file_size(file, error);
    if (file == "-" || error) return std::nullopt;
    total += static_cast<std::int64_t>(size);
  }
  return total;
}

}  // namespace assay::data
