// Activity counters of the fake NVML: a distinct value for each, so that none is mistaken for
// another. FAKENVML_GPM=0 makes the GPUs older than Hopper.
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kOk = 0;
constexpr int kInvalidSample = 2;

unsigned number_of(void* device) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device) - 0x100);
}

struct Rates {
  unsigned gpu, memory;
};
struct Support {
  unsigned version, supported;
};
struct Sample {
  void* device;
  unsigned long number;
};
struct Metric {
  unsigned id;
  int result;
  double value;
  char* names[3];
};
struct Metrics {
  unsigned version, count;
  Sample* before;
  Sample* after;
  Metric metrics[1];
};

unsigned long samples = 0;

}  // namespace

extern "C" {

int nvmlDeviceGetUtilizationRates(void* device, Rates* rates) {
  *rates = {40 + number_of(device), 7};
  return kOk;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  *milliwatts = 500'000 + 1000 * number_of(device);
  return kOk;
}
int nvmlDeviceGetClockInfo(void*, int, unsigned* megahertz) {
  *megahertz = 1980;
  return kOk;
}

int nvmlGpmQueryDeviceSupport(void*, Support* support) {
  const char* said = std::getenv("FAKENVML_GPM");
  support->supported = said == nullptr || std::strcmp(said, "0") != 0 ? 1 : 0;
  return kOk;
}
int nvmlGpmSampleAlloc(Sample** sample) {
  *sample = new Sample{};
  return kOk;
}
int nvmlGpmSampleFree(Sample* sample) {
  delete sample;
  return kOk;
}
int nvmlGpmSampleGet(void* device, Sample* sample) {
  *sample = {device, ++samples};
  return kOk;
}
int nvmlGpmMetricsGet(Metrics* asked) {
  if (asked->before->device != asked->after->device || asked->before->number == 0 ||
      asked->before->number >= asked->after->number) {
    return kInvalidSample;
  }
  for (unsigned i = 0; i < asked->count; ++i) {
    asked->metrics[i].result = kOk;
    asked->metrics[i].value = asked->metrics[i].id + number_of(asked->after->device);
  }
  return kOk;
}
}
