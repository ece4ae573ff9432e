#include "store/parameters.h"

#include "store/database.h"
#include "store/statement.h"

namespace assay::store {

base::Result<void> write_parameters(Store& store, RunId run, const RunParameters& parameters) {
  if (parameters.empty()) return {};
  ASSAY_TRY(Transaction transaction, Transaction::begin(store.database()));
  ASSAY_TRY(Statement insert,
            store.database().prepare("INSERT OR REPLACE INTO run_parameter (run, name, value)"
                                     " VALUES (?1, ?2, ?3)"));
  for (const auto& [name, value] : parameters) {
    ASSAY_TRY_VOID(insert.bind(run, name, value));
    ASSAY_TRY_VOID(insert.run());
  }
  return transaction.commit();
}

base::Result<RunParameters> load_parameters(Store& store, RunId run) {
  RunParameters parameters;
  ASSAY_TRY(Statement select,
            store.database().prepare("SELECT name, value FROM run_parameter WHERE run = ?1"));
  ASSAY_TRY_VOID(select.bind(run));
  ASSAY_TRY_VOID(select.each([&](const Statement& row) {
    parameters[std::string(row.text(0))] = std::string(row.text(1));
  }));
  return parameters;
}

}  // namespace assay::store
