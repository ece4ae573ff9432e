#include "observe/wire/record.h"

namespace assay::wire {

const char* name_of(RecordOp op) {
  switch (op) {
    case RecordOp::kNone:
      return "none";
    case RecordOp::kRead:
      return "read";
    case RecordOp::kWrite:
      return "write";
    case RecordOp::kCreate:
      return "create";
    case RecordOp::kTruncate:
      return "truncate";
    case RecordOp::kDelete:
      return "delete";
    case RecordOp::kRename:
      return "rename";
    case RecordOp::kLink:
      return "link";
    case RecordOp::kExec:
      return "exec";
    case RecordOp::kProcess:
      return "process";
    case RecordOp::kExit:
      return "exit";
    case RecordOp::kMissed:
      return "missed";
    case RecordOp::kList:
      return "list";
    case RecordOp::kAbsent:
      return "absent";
    case RecordOp::kQueried:
      return "queried";
    case RecordOp::kNetwork:
      return "network";
    case RecordOp::kRelink:
      return "relink";
  }
  return "unknown";
}

}  // namespace assay::wire
