#include "observe/shim/gpu/region/hami.h"

namespace assay::gpu {
namespace {

// The text after the prefix `with`, or null.
const char* after(const char* text, const char* with) {
  for (; *with != 0; ++with, ++text) {
    if (*text != *with) return nullptr;
  }
  return text;
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
}

bool same_word(const char* one, const char* other) {
  for (; *one != 0 && lower(*one) == lower(*other); ++one) ++other;
  return *one == *other;
}

// Parses digits and advances. False: none, or too many.
bool number_at(const char*& text, std::uint64_t& value) {
  const char* const begin = text;
  value = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    const auto digit = static_cast<std::uint64_t>(*text - '0');
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
        __builtin_add_overflow(value, digit, &value)) {
      return false;
    }
  }
  return text != begin;
}

// "3000m", "20G", "1024": kibi, mebi, gibi.
bool bytes_in(const char* text, std::uint64_t& bytes) {
  if (!number_at(text, bytes)) return false;
  unsigned shift = 0;
  switch (*text | 0x20) {
    case 'k':
      shift = 10;
      break;
    case 'm':
      shift = 20;
      break;
    case 'g':
      shift = 30;
      break;
    default:
      break;
  }
  if (shift != 0) ++text;
  if (*text != 0 || __builtin_mul_overflow(bytes, std::uint64_t{1} << shift, &bytes)) return false;
  return true;  // 0 means unset: for one device, the value for all devices then applies
}

// Per cent, as thousandths.
bool share_in(const char* text, std::uint32_t& share) {
  std::uint64_t percent = 0;
  if (!number_at(text, percent) || *text != 0 || percent > 100) return false;
  share = static_cast<std::uint32_t>(percent * 10);
  return true;
}

bool priority_in(const char* text, std::uint32_t& priority) {
  if (same_word(text, "0")) {
    priority = static_cast<std::uint32_t>(wire::GpuPriority::kHigh);
    return true;
  }
  if (!same_word(text, "1")) return false;
  priority = static_cast<std::uint32_t>(wire::GpuPriority::kLow);
  return true;
}

// "=VALUE" or "_3=VALUE". False: another variable whose name begins like this.
enum class For : int { kAll = -1 };
bool device_and_value(const char* text, int& device, const char*& value) {
  device = static_cast<int>(For::kAll);
  if (*text == '_') {
    std::uint64_t number = 0;
    ++text;
    if (!number_at(text, number)) return false;
    device = number < kHamiDevices ? static_cast<int>(number) : kHamiDevices;
  }
  if (*text != '=') return false;
  value = text + 1;
  return true;
}

}  // namespace

HamiSettings hami_settings(const char* const* environment) {
  HamiSettings settings;
  bool compute = true;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const char* const line = *environment;
    int device = 0;
    const char* value = nullptr;
    bool understood = true;
    if (const char* rest = after(line, "CUDA_DEVICE_MEMORY_LIMIT");
        rest != nullptr && device_and_value(rest, device, value)) {
      std::uint64_t bytes = 0;
      understood = device < kHamiDevices && bytes_in(value, bytes);
      if (understood) (device < 0 ? settings.bytes : settings.bytes_of[device]) = bytes;
      settings.given = settings.given || (understood && bytes != 0);
    } else if (rest = after(line, "CUDA_DEVICE_SM_LIMIT");
               rest != nullptr && device_and_value(rest, device, value)) {
      std::uint32_t share = 0;
      understood = device < kHamiDevices && share_in(value, share);
      if (understood) (device < 0 ? settings.share : settings.share_of[device]) = share;
      settings.given = settings.given || (understood && share != 0);
    } else if (value = after(line, "CUDA_TASK_PRIORITY="); value != nullptr) {
      understood = priority_in(value, settings.priority);
    } else if (value = after(line, "CUDA_DEVICE_MEMORY_SHARED_CACHE="); value != nullptr) {
      settings.cache = *value == 0 ? nullptr : value;
    } else if (value = after(line, "GPU_CORE_UTILIZATION_POLICY="); value != nullptr) {
      compute = !same_word(value, "disable");
      understood = !compute || same_word(value, "default") || same_word(value, "force");
    }
    if (!understood && settings.invalid == nullptr) settings.invalid = line;
  }
  if (!compute) {
    settings.share = 0;
    settings.priority = 0;
    for (std::uint32_t& share : settings.share_of) share = 0;
  }
  return settings;
}

}  // namespace assay::gpu
