//===- ReportTest.cpp - Records between the import process and its parent -------===//

#include "Guard/Report.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

using namespace ds;
using namespace ds::import_report;

namespace {

/// What the writers put into a file.
std::string contents(int fd) {
  std::string text(static_cast<size_t>(lseek(fd, 0, SEEK_END)), '\0');
  EXPECT_EQ(pread(fd, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
  return text;
}

TEST(Report, ReadsWhatItWrote) {
  int fd = memfd_create("report", 0);
  writeNotice(fd, "one\ntwo");
  writeError(fd, {ExitCode::Corrupt, "entry 'a' is damaged", "copy it again"});
  writeDone(fd);
  Report report = parse(contents(fd));
  ASSERT_EQ(report.notices, std::vector<std::string>{"one\ntwo"});
  ASSERT_TRUE(report.error);
  EXPECT_EQ(report.error->code, ExitCode::Corrupt);
  EXPECT_EQ(report.error->message, "entry 'a' is damaged");
  EXPECT_EQ(report.error->hint, "copy it again");
  EXPECT_TRUE(report.isComplete);
  close(fd);
}

TEST(Report, IsNotCompleteWhenCutAnywhere) {
  std::string whole = "notice 3\nonedone 0\n";
  for (size_t length = 0; length < whole.size(); ++length)
    EXPECT_FALSE(parse(std::string_view(whole).substr(0, length)).isComplete) << length;
  EXPECT_TRUE(parse(whole).isComplete);
}

TEST(Report, DropsControlCharactersOfAnArchive) {
  Report report = parse("notice 6\na\x1b[31m");
  ASSERT_EQ(report.notices.size(), 1u);
  EXPECT_EQ(report.notices[0], "a?[31m");
}

TEST(Report, TrustsNoLengthAndNoCode) {
  EXPECT_FALSE(parse("error 99999999999999999999\nx").error);
  EXPECT_FALSE(parse("error -1\nx").error);
  EXPECT_FALSE(parse("error 5\nabc").error);
  auto report = parse("code 1\n0error 1\nx");
  ASSERT_TRUE(report.error);
  EXPECT_EQ(report.error->code, ExitCode::Internal); // 0 would be success.
}

} // namespace
