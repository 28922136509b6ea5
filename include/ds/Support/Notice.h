//===- Notice.h - What a user should know -------------------------------------------===//
#ifndef DS_SUPPORT_NOTICE_H
#define DS_SUPPORT_NOTICE_H

#include <string>
#include <utility>

namespace ds {

/// One line about something that a user may not expect.
struct Notice {
  Notice(std::string text, bool isCostly = false) : text(std::move(text)), isCostly(isCostly) {}

  std::string text;
  bool isCostly; ///< changes the memory, the time or the numbers of a step: told before what does not
};

} // namespace ds

#endif // DS_SUPPORT_NOTICE_H
