#include "store/input_lists.h"

#include <algorithm>
#include <string_view>

#include "hash/blake3.h"
#include "store/column_encoding.h"

namespace assay::store {
namespace {

// A list ends with a folder if it is this long, so that runs with a file each in many folders do
// not get a list for every file; and here in any case.
constexpr std::size_t kLongEnoughList = 32;
constexpr std::size_t kLongestList = 1024;

std::string_view folder_of(std::string_view path) {
  return path.substr(0, path.rfind('/'));
}

// Of everything that a list says.
hash::Digest digest_of(const std::vector<Input>& list) {
  std::string text;
  for (const Input& input : list) {
    text.append(input.path).append(1, '\0').append(1, input.blake3 ? '\1' : '\0');
    if (input.blake3) {
      text.append(reinterpret_cast<const char*>(input.blake3->bytes.data()), hash::Digest::kSize);
    }
    text.append(reinterpret_cast<const char*>(&input.size), sizeof input.size);
  }
  return hash::blake3(bytes_of(text));
}

}  // namespace

base::Result<bool> InputLists::add(const Input& input) {
  if (inputs() > 0 && input.path <= greatest_) {
    ASSAY_TRY(const bool known, has(input.path));
    if (known) return false;
  } else {
    greatest_ = input.path;
  }
  const bool ends =
      list_.size() >= kLongestList ||
      (list_.size() >= kLongEnoughList && folder_of(list_.back().path) != folder_of(input.path));
  if (ends) ASSAY_TRY_VOID(write());
  list_.push_back(input);
  return true;
}

base::Result<bool> InputLists::has(const std::string& path) {
  if (std::ranges::find(list_, path, &Input::path) != list_.end()) return true;
  if (written_ == 0) return false;
  ASSAY_TRY(Statement select,
            database_->prepare("SELECT 1 FROM run_input WHERE path = ?1 AND run = ?2"));
  ASSAY_TRY_VOID(select.bind(path, run_));
  return select.next_row();
}

// The list in the store with the content of list_, which is written if there is none.
base::Result<std::int64_t> InputLists::list_id() {
  const hash::Digest digest = digest_of(list_);
  Statement& find = uses_->find;
  ASSAY_TRY_VOID(find.bind(digest.bytes));
  ASSAY_TRY(const bool known, find.next_row());
  const std::int64_t id = known ? find.integer(0) : 0;
  find.reset();
  return known ? base::Result<std::int64_t>(id) : new_list(digest);
}

base::Result<std::int64_t> InputLists::new_list(const hash::Digest& digest) {
  if (!lists_) {
    ASSAY_TRY(Statement list, database_->prepare("INSERT INTO input_list (blake3) VALUES (?1)"));
    ASSAY_TRY(Statement file,
              database_->prepare("INSERT INTO listed_input (list, number, path, blake3, size)"
                                 " VALUES (?1, ?2, ?3, ?4, ?5)"));
    lists_.emplace(std::move(list), std::move(file));
  }
  ASSAY_TRY_VOID(lists_->insert.bind(digest.bytes));
  ASSAY_TRY_VOID(lists_->insert.run());
  const std::int64_t id = database_->last_insert_rowid();
  Statement& insert = lists_->insert_file;
  ASSAY_TRY_VOID(insert.bind_integer(1, id));
  std::int64_t number = 0;
  for (const Input& input : list_) {
    ASSAY_TRY_VOID(insert.bind_integer(2, ++number));
    ASSAY_TRY_VOID(insert.bind_borrowed(3, input.path));
    ASSAY_TRY_VOID(input.blake3 ? insert.bind_borrowed(4, input.blake3->bytes)
                                : insert.bind_null(4));
    ASSAY_TRY_VOID(insert.bind_integer(5, input.size));
    ASSAY_TRY_VOID(insert.run());
  }
  return id;
}

base::Result<void> InputLists::write() {
  if (list_.empty()) return {};
  if (!uses_) {
    ASSAY_TRY(Statement find, database_->prepare("SELECT id FROM input_list WHERE blake3 = ?1"));
    ASSAY_TRY(Statement use,
              database_->prepare("INSERT INTO run_list (run, before, list) VALUES (?1, ?2, ?3)"));
    uses_.emplace(std::move(find), std::move(use));
  }
  ASSAY_TRY(const std::int64_t id, list_id());
  ASSAY_TRY_VOID(uses_->insert.bind(run_, written_, id));
  ASSAY_TRY_VOID(uses_->insert.run());
  written_ += std::ssize(list_);
  list_.clear();
  return {};
}

base::Result<void> erase_own_inputs(Database& database, RunId run) {
  ASSAY_TRY(Statement erase,
            database.prepare("DELETE FROM input_list WHERE id IN"
                             " (SELECT list FROM run_list WHERE run = ?1) AND NOT EXISTS"
                             " (SELECT 1 FROM run_list WHERE list = input_list.id"
                             " AND run <> ?1)"));
  ASSAY_TRY_VOID(erase.bind(run));
  return erase.run();
}

}  // namespace assay::store
