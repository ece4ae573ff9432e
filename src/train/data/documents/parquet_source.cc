#include "train/data/documents/parquet_source.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <optional>

#include "base/process/capture.h"
#include "base/process/exit_status.h"
#include "base/process/process.h"
#include "base/text.h"

namespace assay::data {
namespace {

// Exits with our codes: 3 without pyarrow, 64 for an unusable file; one line says why.
constexpr const char* kProgram = R"(
import json, sys
path, column = sys.argv[1:]
def refuse(code, text):
    sys.stderr.write(" ".join(str(text).split()))
    sys.exit(code)
try:
    import pyarrow, pyarrow.parquet
except ImportError:
    refuse(3, "")
def is_text(kind):
    kinds = pyarrow.types
    if kinds.is_dictionary(kind):
        return is_text(kind.value_type)
    is_view = getattr(kinds, "is_string_view", lambda kind: False)
    return kinds.is_string(kind) or kinds.is_large_string(kind) or is_view(kind)
try:
    file = pyarrow.parquet.ParquetFile(path)
    schema = file.schema_arrow
    if column not in schema.names:
        refuse(64, "has no column '%s'|--column names one of: %s" % (column, ", ".join(schema.names[:20])))
    kind = schema.field(column).type
    if not is_text(kind):
        refuse(64, "its column '%s' is %s, not text|" % (column, kind))
    for batch in file.iter_batches(batch_size=1024, columns=[column]):
        texts = batch.column(0).to_pylist()
        sys.stdout.write("".join(json.dumps({column: t}) + "\n" for t in texts))
    sys.stdout.flush()
except BrokenPipeError:
    sys.exit(1)
except (pyarrow.ArrowException, OSError) as error:
    refuse(64, "is not a Parquet file that pyarrow can read: %s|" % str(error)[:200])
)";

class ParquetSource : public ByteSource {
 public:
  ParquetSource(base::Process process, base::UniqueFd output, base::UniqueFd errors,
                const InputFile& file, const std::atomic<bool>* stop,
                std::chrono::milliseconds timeout)
      : process_(std::move(process)),
        output_(std::move(output)),
        errors_(std::move(errors)),
        where_(file.path),
        file_size_(file.bytes),
        stop_(stop),
        timeout_(timeout) {}

  base::Result<std::size_t> read(std::span<char> buffer) override {
    std::size_t size = 0;
    auto heard = std::chrono::steady_clock::now();
    while (size < buffer.size() && !ended_ && (stop_ == nullptr || !*stop_)) {
      std::array<pollfd, 2> wait{{{.fd = output_.get(), .events = POLLIN, .revents = 0},
                                  {.fd = errors_.get(), .events = POLLIN, .revents = 0}}};
      if (::poll(wait.data(), wait.size(), kPollMs) <= 0) {
        if (std::chrono::steady_clock::now() - heard < timeout_) continue;
        return base::fail(base::failed_error(
            where_,
            fmt::format("its reader has sent nothing for {} s",
                        std::chrono::duration_cast<std::chrono::seconds>(timeout_).count()),
            "is its file system mounted?"));
      }
      heard = std::chrono::steady_clock::now();
      if (wait[1].revents != 0) drain_errors();
      if (wait[0].revents == 0) continue;
      const ssize_t count = ::read(output_.get(), buffer.data() + size, buffer.size() - size);
      if (count > 0) size += static_cast<std::size_t>(count);
      if (count < 0 && errno != EINTR && errno != EAGAIN) {
        return base::fail(base::system_error(where_, "cannot read", errno));
      }
      if (count == 0) ASSAY_TRY_VOID(end());
    }
    return size;
  }
  // The other process's progress in the file is not known.
  [[nodiscard]] std::uint64_t file_bytes() const override { return ended_ ? file_size_ : 0; }

 private:
  static constexpr int kPollMs = 100;  // how soon a stop is noticed

  // Reads what the other process writes to standard error, so that it is not blocked; keeps only
  // the beginning. The pipe is closed at the end.
  void drain_errors() {
    constexpr std::size_t kKept = 4096;
    std::array<char, 4096> text{};
    const ssize_t size = ::read(errors_.get(), text.data(), text.size());
    if (size > 0) {
      received_.append(text.data(),
                       std::min(static_cast<std::size_t>(size), kKept - received_.size()));
    }
    if (size == 0 || (size < 0 && errno != EINTR && errno != EAGAIN)) errors_.reset();
  }

  base::Result<void> end() {
    ended_ = true;
    const auto exit =
        process_.wait_until(std::chrono::steady_clock::now() + std::chrono::seconds(10));
    if (!exit) return base::fail(base::failed_error(where_, "its reader does not end"));
    const int code = base::shell_exit_code(exit->wait_status);
    if (code == 0) return {};
    pollfd wait{.fd = errors_.get(), .events = POLLIN, .revents = 0};
    while (errors_.valid() && ::poll(&wait, 1, 0) > 0) drain_errors();
    const std::string& what = received_;
    if (code == 3) {
      return base::fail(base::unfit_error(
          where_, "Parquet files are read by Python's pyarrow, which python3 does not have",
          "pip install pyarrow, and name its python in ASSAY_PARQUET_PYTHON if it is another"));
    }
    if (code != 64) {
      return base::fail(base::failed_error(
          where_, fmt::format("its reader {}: {}", base::exit_text(exit->wait_status), what)));
    }
    const std::size_t bar = std::min(what.find('|'), what.size());
    return base::fail(base::usage_error(where_, what.substr(0, bar),
                                        what.substr(std::min(bar + 1, what.size()))));
  }

  base::Process process_;
  base::UniqueFd output_;
  base::UniqueFd errors_;
  std::string where_;
  std::uint64_t file_size_;
  const std::atomic<bool>* stop_;
  std::chrono::milliseconds timeout_;
  std::string received_;
  bool ended_ = false;
};

}  // namespace

base::Result<std::unique_ptr<ByteSource>> open_parquet(const InputFile& file,
                                                       const std::string& column,
                                                       const std::atomic<bool>* stop,
                                                       std::chrono::milliseconds timeout) {
  ASSAY_TRY(base::Pipe output, base::make_pipe());
  ASSAY_TRY(base::Pipe errors, base::make_pipe());
  const char* chosen = std::getenv("ASSAY_PARQUET_PYTHON");
  const std::string python = chosen != nullptr && *chosen != '\0' ? chosen : "python3";
  auto process = base::Process::start(
      {.arguments = {python, "-c", kProgram, file.path, column},
       .environment = base::Environment::from_current(),
       .redirections = {base::from_null(STDIN_FILENO),
                        {.descriptor = STDOUT_FILENO, .from = output.write_end.get()},
                        {.descriptor = STDERR_FILENO, .from = errors.write_end.get()}}});
  if (!process) {
    return base::fail(base::unfit_error(
        file.path,
        fmt::format("Parquet files are read by Python's pyarrow, and {} cannot be "
                    "started",
                    python),
        "install python3 and pyarrow"));
  }
  return std::make_unique<ParquetSource>(*std::move(process), std::move(output.read_end),
                                         std::move(errors.read_end), file, stop, timeout);
}

}  // namespace assay::data
