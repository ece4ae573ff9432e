// EbpfPrograms: the BPF programs (bpf/files.bpf.c) loaded into the kernel and running, and this
// side's end of what they share. The only file that knows libbpf is ebpf_programs.cc.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/result.h"
#include "observe/collect/ebpf/bpf/message.h"
#include "observe/collect/ebpf/kernel_types.h"

namespace assay::collect {

// Where opens are seen.
enum class EbpfMode {
  kVfs,      // inside the kernel's own open: nothing else is slowed down
  kSyscall,  // as system calls end: where the kernel lets nobody into its functions
};

// The mode that works here, found out by attaching a program that does nothing; an error if none
// does.
base::Result<EbpfMode> ebpf_mode(const KernelTypes& types);

// Whether kSyscall sees what io_uring opens (kVfs always does).
bool follows_uring(const KernelTypes& types);

class EbpfPrograms {
 public:
  // Loads and starts the programs. Until adopt() they see nobody.
  static base::Result<EbpfPrograms> load(EbpfMode mode, const KernelTypes& types);

  EbpfPrograms(EbpfPrograms&&) noexcept;
  EbpfPrograms& operator=(EbpfPrograms&&) = delete;
  ~EbpfPrograms();

  [[nodiscard]] EbpfMode mode() const;

  // Makes a process the first of the command. It must not have run yet.
  base::Result<void> adopt(pid_t process);

  // No more messages from here on.
  void stop();
  // Gives the messages' memory back; none can be taken any more.
  void release_ring();

  // Readable when messages wait; not at once for each, so look every few milliseconds as well.
  [[nodiscard]] int descriptor() const;
  using Receiver =
      std::function<void(const assay_message&, std::string_view path, std::string_view other)>;
  // Takes messages until there are none, or `most` were taken. Returns how many.
  std::size_t take(const Receiver& receive, std::size_t most);

  [[nodiscard]] volatile assay_shared& shared();
  // Whether io_uring's completions are seen (always true for kVfs, which needs none).
  [[nodiscard]] bool follows_uring() const;
  // Runs of a program that the kernel left out because one was under way on that processor.
  [[nodiscard]] std::uint64_t skipped_runs() const;

 private:
  struct Loaded;
  explicit EbpfPrograms(std::unique_ptr<Loaded> loaded);
  std::unique_ptr<Loaded> loaded_;
};

}  // namespace assay::collect
