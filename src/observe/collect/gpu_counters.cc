#include "observe/collect/gpu_counters.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <map>
#include <tuple>
#include <utility>

#include "base/file.h"
#include "base/process/proc.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "observe/collect/process/installed_library.h"
#include "observe/wire/gpu_uuid.h"

namespace assay::collect {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibrary = "libassay-gpu.so";
constexpr std::string_view kDriver = "libcuda.so.1";
constexpr std::string_view kMemory = "/dev/shm";
constexpr std::string_view kPrefix = "assay-gpu-";

bool is_in(const fs::path& folder) {
  return ::access((folder / kDriver).c_str(), F_OK) == 0;
}

// The loader's cache has the zero-terminated names of all its libraries, whatever its format.
bool is_in_cache() {
  const auto cache = base::read_file("/etc/ld.so.cache", base::Bytes{64 << 20});
  return cache && cache->find(std::string(kDriver) + '\0') != std::string::npos;
}

// First in memory, where writing never waits for a disk.
std::array<fs::path, 2> places(const std::string& uid, const fs::path& folder) {
  return {fs::path(kMemory) / (std::string(kPrefix) + uid), folder / "gpu"};
}

wire::GpuRegion* mapped(int file) {
  struct stat status {};
  if (::fstat(file, &status) != 0 ||
      static_cast<std::uint64_t>(status.st_size) < sizeof(wire::GpuRegion)) {
    return nullptr;
  }
  void* memory =
      ::mmap(nullptr, sizeof(wire::GpuRegion), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* region = static_cast<wire::GpuRegion*>(memory);
  if (wire::is_valid(region->header, static_cast<std::uint64_t>(status.st_size))) return region;
  ::munmap(memory, sizeof(wire::GpuRegion));
  return nullptr;
}

// The inode of this pid namespace; pids of other namespaces are meaningless here.
std::uint64_t pid_namespace() {
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

std::string uuid_of(const wire::GpuDevice& device) {
  return wire::uuid_text({device.uuid[0].load(), device.uuid[1].load()});
}

void add_share(const wire::GpuRegion& region, const wire::GpuDevice& device, std::string uuid,
               std::vector<GpuReport::Share>& shares) {
  GpuReport::Share one{.uuid = std::move(uuid),
                       .byte_limit = wire::byte_limit(region, device),
                       .share = wire::share_of(region, device),
                       .busy_ns = device.busy_ns.load(),
                       .waited_ns = device.waited_ns.load()};
  if (one.byte_limit == 0 && !one.share.limited() && one.busy_ns == 0 && one.waited_ns == 0) return;
  shares.push_back(std::move(one));
}

}  // namespace

bool cuda_may_run(const base::Environment& environment) {
  const std::string_view requested = environment.get("ASSAY_GPU").value_or("");
  if (requested == "1") return true;
  if (requested == "0") return false;
  bool found = false;
  base::for_each_part(environment.get("LD_LIBRARY_PATH").value_or(""), ":;",
                      [&](std::string_view folder) { found = found || is_in(fs::path(folder)); });
  if (found) return true;
  for (const char* usual :
       {"/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/lib64", "/usr/lib"}) {
    if (is_in(usual)) return true;
  }
  return is_in_cache();
}

bool gpu_library_found() {
  return !installed_library(kLibrary).empty();
}

std::optional<GpuCounters> GpuCounters::make(const std::string& uid, const fs::path& folder) {
  for (const fs::path& path : places(uid, folder)) {
    const base::UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (!file.valid()) continue;
    wire::GpuRegion* region = wire::make_gpu_region(file.get()) ? mapped(file.get()) : nullptr;
    if (region != nullptr) return GpuCounters(path, region);
    ::unlink(path.c_str());
  }
  return std::nullopt;
}

std::optional<GpuCounters> GpuCounters::find(const std::string& uid, const fs::path& folder) {
  for (const fs::path& path : places(uid, folder)) {
    const base::UniqueFd file(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    wire::GpuRegion* region = file.valid() ? mapped(file.get()) : nullptr;
    if (region != nullptr) return GpuCounters(path, region);
  }
  return std::nullopt;
}

std::vector<std::string> GpuCounters::uids() {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator at(kMemory, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    // Files of other users could be truncated while they are mapped, which raises SIGBUS.
    struct stat status {};
    if (name.starts_with(kPrefix) && ::lstat(at->path().c_str(), &status) == 0 &&
        S_ISREG(status.st_mode) && status.st_uid == ::geteuid()) {
      found.push_back(name.substr(kPrefix.size()));
    }
  }
  std::sort(found.begin(), found.end());
  return found;
}

GpuCounters::GpuCounters(GpuCounters&& other) noexcept
    : path_(std::move(other.path_)), region_(std::exchange(other.region_, nullptr)) {}

GpuCounters& GpuCounters::operator=(GpuCounters&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(region_, other.region_);
  return *this;
}

GpuCounters::~GpuCounters() {
  if (region_ != nullptr) ::munmap(region_, sizeof(wire::GpuRegion));
}

bool GpuCounters::add_to(base::Environment& environment) const {
  const fs::path library = installed_library(kLibrary);
  if (library.empty()) return false;
  environment.add_to_list("LD_PRELOAD", library.native(), base::Environment::Place::kLast);
  // See preload.cc: programs built with AddressSanitizer.
  environment.add_to_list("ASAN_OPTIONS", "verify_asan_link_order=0",
                          base::Environment::Place::kFirst);
  environment.set(wire::kGpuRegionVariable, path_.native());
  return true;
}

GpuReport GpuCounters::report() const {
  GpuReport report;
  report.totals = wire::sum_of(*region_);
  report.lost = region_->header.lost_threads.load() + region_->header.lost_collectives.load();
  // Each process has its own rows.
  std::map<std::tuple<std::uint64_t, unsigned, unsigned>, GpuReport::Collective> joined;
  for (const wire::GpuCollective& row : region_->collectives) {
    const std::uint64_t calls = row.calls.load();
    const unsigned operation = row.operation.load();
    if (row.key.load() == 0 || calls == 0 || operation >= wire::kGpuOperations) continue;
    const unsigned type = row.type.load();
    GpuReport::Collective& sum = joined[{row.communicator.load(), operation, type}];
    sum.communicator = row.communicator.load();
    sum.ranks = row.ranks.load();
    sum.operation = static_cast<wire::GpuOperation>(operation);
    sum.type = type;
    sum.calls += calls;
    sum.bytes += row.bytes.load();
  }
  for (auto& [key, sum] : joined) report.collectives.push_back(sum);
  for (std::size_t i = 0; i < wire::kGpuDevices; ++i) {
    if (region_->devices[i].key.load() == 0) continue;
    std::uint64_t peak = 0;
    for (const wire::GpuSlot& slot : region_->slots) peak = std::max(peak, slot.peak[i].load());
    report.memory.push_back({uuid_of(region_->devices[i]), peak});
  }
  // An unused row has the limits for all devices without their own.
  const wire::GpuDevice unused{};
  add_share(*region_, unused, "", report.shares);
  for (const wire::GpuDevice& device : region_->devices) {
    if (device.key.load() != 0) add_share(*region_, device, uuid_of(device), report.shares);
  }
  return report;
}

std::vector<bool> GpuCounters::living() const {
  const base::UniqueFd file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  const std::size_t given =
      std::min<std::size_t>(region_->header.next_slot.load(), wire::kGpuSlots);
  std::vector<bool> living(given);
  if (!file.valid()) return living;
  const std::uint64_t here = pid_namespace();
  for (std::size_t i = 0; i < given; ++i) {
    const wire::GpuSlot& slot = region_->slots[i];
    const pid_t process = slot.process.load();
    if (process == 0) continue;
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(i);
    lock.l_len = 1;
    living[i] = ::fcntl(file.get(), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    // A program may have closed the descriptor that holds the lock.
    if (living[i] || slot.namespace_id.load() != here) continue;
    const auto stat = base::process_stat(process);
    living[i] = stat && !stat->has_ended() &&
                static_cast<std::uint64_t>(stat->start_ticks) == slot.start_ticks.load();
  }
  return living;
}

void GpuCounters::remove() {
  ::unlink(path_.c_str());
}

}  // namespace assay::collect
