#include "train/backend.h"

#include <new>

#include "base/check.h"
#include "base/error.h"

namespace assay::train {

base::Result<void> Backend::clear(const step::Program& program, const step::View& view) {
  return write(view, std::vector<std::byte>(static_cast<std::size_t>(program.bytes_of(view))));
}

base::Result<HostCopy> Backend::copy_out(const step::Program& program,
                                         std::span<const step::View> views) try {
  const auto memory = std::make_shared<std::vector<std::vector<std::byte>>>();
  HostCopy copy{.wait = [] { return base::Result<void>{}; }, .memory = memory};
  for (const step::View& view : views) {
    memory->emplace_back(static_cast<std::size_t>(program.bytes_of(view)));
    ASSAY_TRY_VOID(read(view, memory->back()));
    copy.views.emplace_back(memory->back());
  }
  return copy;
} catch (const std::bad_alloc&) {
  return base::fail(
      base::unfit_error("host memory", "is too small for a copy of the training state"));
}

base::Result<void> gather_first_weights(Backend& backend, const step::Program& program) {
  if (backend.has_first_weights()) return {};
  for (const step::Op& op : program.prologue) ASSAY_TRY_VOID(backend.execute(op));
  backend.set_has_first_weights(true);
  return {};
}

base::Result<Scalars> run_step(Backend& backend, const step::Program& program,
                               const StepSettings& settings, const BatchSource& batches,
                               const DocumentSource& documents) {
  ASSAY_CHECK(!program.choices.document_mask || documents != nullptr,
              "a document mask needs to know where documents begin");
  backend.begin_step(settings);
  ASSAY_TRY_VOID(gather_first_weights(backend, program));
  const auto count = static_cast<std::size_t>(program.micro_tokens());
  std::vector<std::int32_t> tokens(count);
  std::vector<std::int32_t> targets(program.choices.purpose != step::Purpose::kLogits ? count : 0);
  std::vector<std::int32_t> begins(program.choices.document_mask ? count : 0);
  for (const step::Op& op : program.ops) {
    if (op.kind == step::OpKind::kRead) {
      ASSAY_TRY_VOID(batches(op.micro, tokens, targets));
      if (op.documents) ASSAY_TRY_VOID(documents(op.micro, begins));
      backend.set_batch(op, {tokens, targets, begins});
    } else {
      ASSAY_TRY_VOID(backend.execute(op));
    }
  }
  return backend.finish_step();
}

}  // namespace assay::train
