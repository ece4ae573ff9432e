#include "comm/solo.h"

#include <cstring>

namespace assay::comm {
namespace {

class Solo : public Communicator {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int ranks() const override { return 1; }
  void abort(const base::Error&) override {}  // there is nobody to tell

 protected:
  base::Result<void> run(const Call& call, const void* in, void* out, Stream) override {
    if (in != out && call.count > 0) std::memcpy(out, in, static_cast<std::size_t>(call.bytes()));
    return {};
  }
};

}  // namespace

std::unique_ptr<Communicator> make_solo() {
  return std::make_unique<Solo>();
}

}  // namespace assay::comm
