#include "lineage/graph/stale_reason.h"

#include <fmt/format.h>

namespace assay::lineage {
namespace {

std::string changed_text(const std::optional<store::RunId>& writer) {
  if (!writer) return "has changed";
  if (*writer == 0) return "was changed by hand (no run did it)";
  return fmt::format("was written by run {} since", *writer);
}

}  // namespace

std::string_view name_of(Cause cause) {
  switch (cause) {
    case Cause::kInputRemade:
      return "input-remade";
    case Cause::kInputChanged:
      return "input-changed";
    case Cause::kInputMissing:
      return "input-gone";
    case Cause::kChangeUndone:
      return "change-undone";
    case Cause::kOutputChanged:
      return "output-changed";
    case Cause::kOutputMissing:
      return "output-gone";
    case Cause::kOutputReplaced:
      return "output-replaced";
    case Cause::kUpstream:
      return "stage-stale";
    case Cause::kLinkMoved:
      return "link-moved";
    case Cause::kMadeLinkMoved:
      return "made-link-moved";
    case Cause::kListedMore:
      return "listed-more";
    case Cause::kListedGone:
      return "listed-gone";
    case Cause::kListedOwn:
      return "listed-own";
    case Cause::kQueriedChanged:
      return "queried-changed";
    case Cause::kQueriedGone:
      return "queried-gone";
    case Cause::kChangesAgain:
      return "changes-again";
    case Cause::kIncomplete:
      return "incomplete";
    case Cause::kInterpreter:
      return "interpreter-changed";
    case Cause::kAppeared:
      return "appeared";
  }
  return "";
}

std::string Reason::text(const std::function<std::string(const std::string&)>& shown) const {
  switch (cause) {
    case Cause::kInputRemade:
      return fmt::format("stage {} has written {} since", stage, shown(path));
    case Cause::kInputChanged:
      return fmt::format("input {} {}", shown(path), changed_text(writer));
    case Cause::kInputMissing:
      return fmt::format("input {} is gone", shown(path));
    case Cause::kChangeUndone:
      return fmt::format("stage {} wrote {} again after this stage changed it", stage, shown(path));
    case Cause::kOutputChanged:
      return fmt::format("output {} {}", shown(path), changed_text(writer));
    case Cause::kOutputMissing:
      return fmt::format("output {} is gone", shown(path));
    case Cause::kOutputReplaced:
      return fmt::format("stage {} has replaced {}", stage, shown(path));
    case Cause::kUpstream:
      return fmt::format("stage {} is stale", stage);
    case Cause::kLinkMoved:
    case Cause::kMadeLinkMoved:
      if (!instead.empty()) return fmt::format("link {} is a {} now", shown(path), instead);
      return now.empty() ? fmt::format("link {} is gone", shown(path))
                         : fmt::format("link {} leads to {} now", shown(path), now);
    case Cause::kListedMore:
      return fmt::format("{} is new in a folder that was listed", shown(path));
    case Cause::kListedGone:
      return fmt::format("{} was listed, and is gone", shown(path));
    case Cause::kListedOwn:
      return fmt::format("{}, which the stage makes, is in a folder that it listed before",
                         shown(path));
    case Cause::kQueriedChanged:
      return fmt::format("{}, which the stage asked about, {}", shown(path), now);
    case Cause::kQueriedGone:
      return fmt::format("{}, which the stage asked about, is gone", shown(path));
    case Cause::kChangesAgain:
      return fmt::format("{} is changed in place, and no stage makes it", shown(path));
    case Cause::kIncomplete:
      return fmt::format("not complete: {}", now);
    case Cause::kInterpreter:
      return now.empty() ? fmt::format("interpreter {} is gone", shown(path))
                         : fmt::format("interpreter {} is {}", shown(path), now);
    case Cause::kAppeared:
      return fmt::format("{} was looked for, and is there now", shown(path));
  }
  return {};
}

}  // namespace assay::lineage
