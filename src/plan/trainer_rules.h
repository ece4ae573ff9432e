// TrainerRules: which layouts and batches of a job our trainer executes, by its own rules
// (step/rules.h), for searches that ask about each that they try.
#pragma once

#include <string>

#include "base/result.h"
#include "plan/model/software.h"
#include "spec/job.h"
#include "step/program.h"
#include "step/rules.h"

namespace assay::plan {

class TrainerRules {
 public:
  // Refuses nothing for jobs that other software runs, and for jobs that the trainer cannot execute
  // in any layout: these are predicted for other software in any case.
  TrainerRules(const spec::JobSpec& job, Framework framework);

  // Whether the trainer executes the job in some layout, and so refuses others.
  [[nodiscard]] bool apply() const { return apply_; }

  // Of job.layout and job.batch only the length of sequences matters.
  [[nodiscard]] bool accept(const spec::LayoutSpec& layout, const spec::BatchSpec& batch) const;
  // Whether some number of micro-batches of some size would be accepted.
  [[nodiscard]] bool accept(const spec::LayoutSpec& layout) const;

  // Why a layout is not accepted: "layout.tp: …".
  [[nodiscard]] std::string reason(const spec::LayoutSpec& layout,
                                   const spec::BatchSpec& batch) const;
  [[nodiscard]] std::string reason(const spec::LayoutSpec& layout) const;

 private:
  [[nodiscard]] step::Choices choices_of(const spec::LayoutSpec& layout,
                                         const spec::BatchSpec& batch) const;
  [[nodiscard]] spec::BatchSpec easiest_batch(const spec::LayoutSpec& layout) const;
  [[nodiscard]] const step::ProgramRule* broken(const step::Choices& choices) const;

  spec::ModelSpec model_;
  step::Choices choices_;
  bool gpu_ = true;
  bool apply_ = false;
};

// Whether our trainer has code for such a device.
base::Result<void> check_device(const spec::DeviceSpec& device);

// What `assay train` would say of the job on its own devices: the same line, before anything runs.
base::Result<void> check_trained(const spec::JobSpec& job);

}  // namespace assay::plan
