//===- TextPage.h - Tables for a terminal -----------------------------------------===//
#ifndef DS_LIB_REPORT_TEXTPAGE_H
#define DS_LIB_REPORT_TEXTPAGE_H

#include "ds/Report/PlanReport.h"

#include <cstdint>
#include <string>
#include <vector>

namespace ds::report {

/// `text` in exactly `width` columns; what is too long loses its middle.
std::string left(std::string text, unsigned width);
std::string right(const std::string &text, unsigned width);
std::string percent(int64_t part, int64_t whole, int digits = 1);

/// A text of lines that end in no space.
class TextPage {
public:
  explicit TextPage(const TextOptions &options);

  /// Columns of a line.
  unsigned width() const { return options.width; }
  /// `text` in the colour of an escape sequence, where colours are asked for.
  std::string paint(const std::string &text, const char *code) const;
  /// A bar of part / whole of `room` columns, in eighths of a column; anything above zero is visible.
  std::string bar(int64_t part, int64_t whole, unsigned room) const;
  /// The values as a line of columns of eight heights between the least and the most; each column shows the
  /// largest value it stands for.
  std::string curve(const std::vector<int64_t> &values, unsigned room) const;

  void line(const std::string &text);
  /// The head of a part of the page, and of a part of that.
  void section(const std::string &text);
  void heading(const std::string &text);
  /// Lines that are there already.
  void add(const std::string &lines) { out += lines; }
  std::string take() { return std::move(out); }

private:
  TextOptions options;
  std::string out;
};

/// All that a plan says of one rank.
void printRank(TextPage &page, const PlanReport &report, const RankPlan &rank);

} // namespace ds::report

#endif // DS_LIB_REPORT_TEXTPAGE_H
