//===- Report.h - What the import process tells the process that started it -----===//
//
// A sequence of records in a file that the parent opened: a kind, the length of the text, the text. The
// parent believes none of it: it reads what is well formed and drops control characters before it shows
// anything.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_IMPORT_GUARD_REPORT_H
#define DS_LIB_IMPORT_GUARD_REPORT_H

#include "ds/Support/Error.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ds::import_report {

/// One report, as it was read.
struct Report {
  std::optional<Error> error;
  std::vector<std::string> notices;
  bool isComplete = false; ///< the process said that it was done
};

void writeNotice(int fd, std::string_view text);
void writeError(int fd, const Error &error);
void writeDone(int fd);
/// Reads what a process wrote, which may have ended in the middle of a record.
Report parse(std::string_view bytes);
/// The text without control characters other than line feeds, at most `limit` bytes long.
std::string printable(std::string_view text, size_t limit);

} // namespace ds::import_report

#endif // DS_LIB_IMPORT_GUARD_REPORT_H
