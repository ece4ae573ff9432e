// EbpfPrograms: the BPF programs (bpf/files.bpf.c) loaded and running in the kernel, and the memory
// shared with them.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "observe/collect/ebpf/bpf/message.h"
#include "observe/collect/ebpf/preflight.h"

namespace assay::collect {

class EbpfPrograms {
 public:
  // Loads and starts the programs. Until adopt() they observe no process.
  static base::Result<EbpfPrograms> load();

  EbpfPrograms(EbpfPrograms&&) noexcept;
  EbpfPrograms& operator=(EbpfPrograms&&) = delete;
  ~EbpfPrograms();

  [[nodiscard]] const EbpfSupport& support() const;

  // Makes a process the first of the command. It must not have started yet.
  base::Result<void> adopt(pid_t process);
  // Loads and starts the programs that observe io_uring, if this kernel lets it be observed: before
  // the command's first ring is set up. Few commands have one, and it takes milliseconds.
  void follow_uring();
  [[nodiscard]] bool follows_uring() const;

  // No more messages from here on.
  void stop();
  // Frees the ring buffer; no message can be taken after that.
  void release_ring();

  // Readable when many messages wait, but not after each one: poll every few milliseconds as well.
  [[nodiscard]] int descriptor() const;
  using Receiver =
      std::function<void(const assay_message&, std::string_view path, std::string_view other)>;
  // Takes messages until there are none, or `most` were taken. Returns their number.
  std::size_t take(const Receiver& receive, std::size_t most);

  [[nodiscard]] volatile assay_shared& shared();
  // Runs of a program that the kernel skipped because one was running on that CPU.
  [[nodiscard]] std::uint64_t skipped_runs() const;

 private:
  struct ReadyProgram;
  struct Loaded;
  explicit EbpfPrograms(std::unique_ptr<Loaded> loaded);
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace assay::collect
