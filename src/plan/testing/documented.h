// Figures that pages state, read back so that tests can compare them with what is computed.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"

namespace assay::plan::testing {

// A number as written: its last digit is the precision that it claims.
struct WrittenNumber {
  double value = 0;
  double last_digit = 1;
};

// At the start of the text, with the digits' grouping commas; none if there is no number.
inline std::optional<WrittenNumber> number_at(std::string_view text, std::size_t& length) {
  std::string digits;
  std::size_t at = 0;
  const auto take = [&] { digits += text[at++]; };
  if (at < text.size() && (text[at] == '-' || text[at] == '+')) take();
  const auto is_digit_at = [&](std::size_t i) {
    return i < text.size() && base::is_digit(text[i]);
  };
  std::size_t decimals = 0;
  for (bool point = false; at < text.size();) {
    if (is_digit_at(at)) {
      take();
      decimals += point ? 1 : 0;
    } else if (text[at] == ',' && !point && is_digit_at(at + 1) && is_digit_at(at + 2) &&
               is_digit_at(at + 3)) {
      ++at;
    } else if (text[at] == '.' && !point && is_digit_at(at + 1)) {
      point = true;
      take();
    } else {
      break;
    }
  }
  if (digits.empty() || !base::is_digit(digits.back())) return std::nullopt;
  length = at;
  return WrittenNumber{std::strtod(digits.c_str(), nullptr),
                       std::pow(10.0, -static_cast<double>(decimals))};
}

// The last bits of exp() differ between processors: a figure at the edge may round either way.
inline void expect_written(const WrittenNumber& written, double computed,
                           const std::string& where) {
  EXPECT_NEAR(written.value, computed,
              0.51 * written.last_digit + 0.02 * std::abs(written.last_digit))
      << where;
}

class Page {
 public:
  Page(const std::string& root, std::string name) : name_(std::move(name)) {
    std::ifstream stream(root + "/" + name_);
    std::ostringstream text;
    text << stream.rdbuf();
    text_ = text.str();
    EXPECT_FALSE(text_.empty()) << name_;
  }

  // The sentence or line, in which each "#" stands for the next of the numbers.
  void says(const std::string& sentence, const std::vector<double>& numbers) const {
    const std::string lead = sentence.substr(0, sentence.find('#'));
    std::vector<WrittenNumber> written;
    for (std::size_t at = 0; (at = text_.find(lead, at)) != std::string::npos; ++at) {
      if (read_at(at, sentence, written)) break;
      written.clear();
    }
    ASSERT_EQ(written.size(), numbers.size()) << name_ << " does not say: " << sentence;
    for (std::size_t i = 0; i < numbers.size(); ++i)
      expect_written(written[i], numbers[i], name_ + ": " + sentence);
  }

  // The cells of every row, without the heads, of the first table after this text.
  [[nodiscard]] std::vector<std::vector<std::string>> table_after(const std::string& from) const {
    const std::size_t begin = text_.find(from);
    EXPECT_NE(begin, std::string::npos) << name_ << ": " << from;
    std::vector<std::vector<std::string>> rows;
    if (begin == std::string::npos) return rows;
    bool ended = false;
    base::for_each_line(std::string_view(text_).substr(begin), [&](std::string_view line) {
      const bool in_table = line.starts_with('|');
      ended = ended || (!in_table && !rows.empty());
      if (!in_table || ended) return;
      std::vector<std::string> cells;
      line.remove_prefix(1);
      for (std::size_t bar = 0; (bar = line.find('|')) != std::string_view::npos;) {
        cells.emplace_back(base::trim(line.substr(0, bar)));
        line.remove_prefix(bar + 1);
      }
      rows.push_back(std::move(cells));
    });
    EXPECT_GE(rows.size(), 3U) << name_ << ": no table after " << from;
    rows.erase(rows.begin(),
               rows.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(2, rows.size())));
    return rows;
  }

 private:
  // Whether the sentence is there; its numbers as written.
  bool read_at(std::size_t at, const std::string& sentence,
               std::vector<WrittenNumber>& written) const {
    for (const char c : sentence) {
      if (c != '#') {
        if (at >= text_.size() || text_[at] != c) return false;
        ++at;
        continue;
      }
      std::size_t length = 0;
      const auto number = number_at(std::string_view(text_).substr(at), length);
      if (!number) return false;
      written.push_back(*number);
      at += length;
    }
    return true;
  }

  std::string name_;
  std::string text_;
};

// A row of a table: cells that are texts, then numbers.
struct TableRow {
  std::vector<std::string> texts;
  std::vector<double> numbers;
};

// The page's table has these rows, in any order, and no other.
inline void expect_table(const std::vector<std::vector<std::string>>& written,
                         const std::vector<TableRow>& computed) {
  EXPECT_EQ(written.size(), computed.size());
  for (const TableRow& row : computed) {
    const std::string name = fmt::format("{}", fmt::join(row.texts, " | "));
    const std::vector<std::string>* found = nullptr;
    for (const auto& cells : written) {
      if (cells.size() >= row.texts.size() &&
          std::equal(row.texts.begin(), row.texts.end(), cells.begin())) {
        found = &cells;
      }
    }
    if (found == nullptr) {
      ADD_FAILURE() << "no row: " << name;
      continue;
    }
    ASSERT_GE(found->size(), row.texts.size() + row.numbers.size()) << name;
    for (std::size_t i = 0; i < row.numbers.size(); ++i) {
      const std::string& cell = (*found)[row.texts.size() + i];
      std::size_t length = 0;
      const auto number = number_at(cell, length);
      ASSERT_TRUE(number) << name << ": " << cell;
      expect_written(*number, row.numbers[i], name + ": " + cell);
    }
  }
}

}  // namespace assay::plan::testing
