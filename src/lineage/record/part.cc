#include "lineage/record/part.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <span>
#include <utility>

#include "base/error.h"
#include "hash/blake3.h"
#include "hash/digest.h"
#include "lineage/record/part_check.h"

namespace assay::lineage {
namespace {

constexpr std::string_view kPartMagic = "assay part 2\n";

hash::Digest digest_of(std::string_view bytes) {
  return hash::blake3(std::as_bytes(std::span(bytes)));
}

// One description of the format for both directions: fields(part, Writer) and fields(part, Reader).
class PartWriter {
 public:
  static constexpr bool kReads = false;
  void number(std::int64_t value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out.append(bytes, sizeof bytes);
  }
  void text(const std::string& value) {
    number(static_cast<std::int64_t>(value.size()));
    out += value;
  }
  std::string out;
};

class PartReader {
 public:
  static constexpr bool kReads = true;
  explicit PartReader(std::string_view bytes) : rest_(bytes) {}
  void number(std::int64_t& value) {
    if (rest_.size() < sizeof value) return fail();
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
  }
  void text(std::string& value) {
    const std::size_t size = length(1);
    value.assign(rest_.substr(0, size));
    rest_.remove_prefix(size);
  }
  // The length of a list whose elements take at least `bytes_each`, checked against the bytes left,
  // so that a wrong length does not allocate memory.
  std::size_t length(std::size_t bytes_each) {
    std::int64_t size = 0;
    number(size);
    if (!failed_ && size >= 0 && static_cast<std::uint64_t>(size) <= rest_.size() / bytes_each) {
      return static_cast<std::size_t>(size);
    }
    fail();
    return 0;
  }
  void fail() {
    failed_ = true;
    rest_ = {};
  }
  [[nodiscard]] bool good() const { return !failed_ && rest_.empty(); }
  [[nodiscard]] bool failed() const { return failed_; }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

template <class Stream, class Whole>
void whole_number(Stream& stream, Whole& value) {
  if constexpr (Stream::kReads) {
    std::int64_t wide = 0;
    stream.number(wide);
    if (!std::in_range<Whole>(wide)) return stream.fail();
    value = static_cast<Whole>(wide);
  } else {
    stream.number(static_cast<std::int64_t>(value));
  }
}

template <class Stream, class Flag>
void flag(Stream& stream, Flag& value) {
  if constexpr (Stream::kReads) {
    std::int64_t wide = 0;
    stream.number(wide);
    if (wide != 0 && wide != 1) return stream.fail();
    value = wide == 1;
  } else {
    stream.number(value ? 1 : 0);
  }
}

template <class Stream, class Real>
void real(Stream& stream, Real& value) {
  if constexpr (Stream::kReads) {
    std::int64_t bits = 0;
    stream.number(bits);
    value = std::bit_cast<double>(bits);
  } else {
    stream.number(std::bit_cast<std::int64_t>(value));
  }
}

template <class Stream, class Optional, class Each>
void maybe(Stream& stream, Optional& value, const Each& each) {
  bool is_there = value.has_value();
  flag(stream, is_there);
  if constexpr (Stream::kReads) {
    if (is_there) value.emplace();
  }
  if (is_there) each(*value);
}

template <class Stream, class List, class Each>
void list(Stream& stream, List& values, const Each& each) {
  if constexpr (Stream::kReads) {
    const std::size_t size = stream.length(sizeof(std::int64_t));
    for (std::size_t i = 0; i < size && !stream.failed(); ++i) each(values.emplace_back());
  } else {
    stream.number(static_cast<std::int64_t>(values.size()));
    for (const auto& value : values) each(value);
  }
}

template <class Stream, class Digest>
void digest_field(Stream& stream, Digest& digest) {
  std::string bytes(digest.bytes.size(), '\0');
  std::memcpy(bytes.data(), digest.bytes.data(), bytes.size());
  stream.text(bytes);
  if constexpr (Stream::kReads) {
    if (bytes.size() != digest.bytes.size()) return stream.fail();
    std::memcpy(digest.bytes.data(), bytes.data(), bytes.size());
  }
}

template <class Stream, class R>
void rule_fields(Stream& stream, R& rule) {
  stream.text(rule.name);
  flag(stream, rule.keep);
  stream.text(rule.sentence);
}

template <class Stream, class Status>
void status_field(Stream& stream, Status& status) {
  auto number = static_cast<int>(status);
  whole_number(stream, number);
  if constexpr (Stream::kReads) {
    if (number < 0 || number > static_cast<int>(store::OutputStatus::kDeleted)) {
      return stream.fail();
    }
    status = static_cast<store::OutputStatus>(number);
  }
}

template <class Stream, class GpuWork>
void gpu_fields(Stream& stream, GpuWork& gpu) {
  list(stream, gpu.use, [&](auto& use) {
    stream.text(use.quantity);
    stream.number(use.calls);
    stream.number(use.amount);
  });
  list(stream, gpu.memory, [&](auto& memory) {
    stream.text(memory.device);
    stream.number(memory.peak_bytes);
  });
  list(stream, gpu.collectives, [&](auto& row) {
    stream.text(row.communicator);
    stream.number(row.ranks);
    stream.text(row.operation);
    stream.text(row.type);
    stream.number(row.calls);
    stream.number(row.bytes);
  });
  const auto number = [&](auto& value) { stream.number(value); };
  list(stream, gpu.shares, [&](auto& share) {
    stream.text(share.device);
    maybe(stream, share.memory_bytes, number);
    maybe(stream, share.share_thousandths, number);
    stream.text(share.priority);
    flag(stream, share.borrow);
    stream.number(share.busy_ns);
    stream.number(share.waited_ns);
  });
}

template <class Stream, class P>
void fields(Stream& stream, P& part) {
  const auto digest = [&](auto& value) { digest_field(stream, value); };
  whole_number(stream, part.rank);
  stream.text(part.host);
  stream.text(part.recorder);
  stream.text(part.run);
  stream.number(part.started_unix_ns);
  maybe(stream, part.wait_status, [&](auto& status) { whole_number(stream, status); });
  stream.number(part.dropped);
  real(stream, part.usage.user_s);
  real(stream, part.usage.system_s);
  stream.number(part.usage.max_rss_bytes);
  stream.number(part.usage.read_bytes);
  stream.number(part.usage.written_bytes);
  gpu_fields(stream, part.gpu);
  list(stream, part.inputs, [&](auto& input) {
    stream.text(input.what.path);
    maybe(stream, input.what.blake3, digest);
    stream.number(input.what.size);
    rule_fields(stream, input.rule);
  });
  list(stream, part.outputs, [&](auto& output) {
    stream.text(output.what.path);
    maybe(stream, output.what.blake3, digest);
    stream.number(output.what.size);
    status_field(stream, output.what.status);
    stream.text(output.what.from);
    maybe(stream, output.what.before, digest);
    rule_fields(stream, output.rule);
  });
  list(stream, part.files_left_out, [&](auto& file) {
    stream.text(file.what.path);
    flag(stream, file.what.read);
    flag(stream, file.what.changed);
    rule_fields(stream, file.rule);
  });
  list(stream, part.processes, [&](auto& process) {
    stream.number(process.pid);
    stream.number(process.parent);
    list(stream, process.arguments, [&](auto& argument) { stream.text(argument); });
    stream.text(process.program);
    stream.number(process.started_ns);
    maybe(stream, process.ended_ns, [&](auto& value) { stream.number(value); });
    maybe(stream, process.wait_status, [&](auto& value) { whole_number(stream, value); });
  });
  const auto missed = [&](auto& entry) {
    stream.text(entry.what);
    stream.text(entry.text);
  };
  list(stream, part.what_was_missed, missed);
  list(stream, part.problems, missed);
}

}  // namespace

std::string encode(const Part& part) {
  PartWriter writer;
  fields(writer, part);
  const hash::Digest digest = digest_of(writer.out);
  std::string bytes(kPartMagic);
  bytes.append(reinterpret_cast<const char*>(digest.bytes.data()), digest.bytes.size());
  return bytes + writer.out;
}

base::Result<Part> decode(std::string_view bytes, const std::string& name) {
  const auto damaged = [&] {
    return base::fail(
        base::failed_error(name, "is damaged, or was written by another version of assay"));
  };
  hash::Digest digest;
  if (bytes.size() < kPartMagic.size() + digest.bytes.size() || !bytes.starts_with(kPartMagic)) {
    return damaged();
  }
  bytes.remove_prefix(kPartMagic.size());
  std::memcpy(digest.bytes.data(), bytes.data(), digest.bytes.size());
  bytes.remove_prefix(digest.bytes.size());
  if (digest_of(bytes) != digest) return damaged();
  Part part;
  PartReader reader(bytes);
  fields(reader, part);
  if (!reader.good()) return damaged();
  if (auto problem = problem_in(part)) {
    return base::fail(base::failed_error(name, *std::move(problem)));
  }
  return part;
}

store::Missed rank_not_recorded(int rank, const std::string& host, const std::string& why) {
  return {"rank", fmt::format("what rank {}{} did is not recorded: {}", rank,
                              host.empty() ? "" : " on " + host, why)};
}

}  // namespace assay::lineage
