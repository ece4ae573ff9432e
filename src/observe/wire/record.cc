#include "observe/wire/record.h"

namespace assay::wire {

const char* name_of(Op op) {
  switch (op) {
    case Op::kNone:
      return "none";
    case Op::kRead:
      return "read";
    case Op::kWrite:
      return "write";
    case Op::kCreate:
      return "create";
    case Op::kTruncate:
      return "truncate";
    case Op::kDelete:
      return "delete";
    case Op::kRename:
      return "rename";
    case Op::kLink:
      return "link";
    case Op::kExec:
      return "exec";
    case Op::kProcess:
      return "process";
    case Op::kExit:
      return "exit";
    case Op::kMissed:
      return "missed";
    case Op::kList:
      return "list";
    case Op::kAbsent:
      return "absent";
    case Op::kNetwork:
      return "network";
    case Op::kRelink:
      return "relink";
  }
  return "unknown";
}

}  // namespace assay::wire
