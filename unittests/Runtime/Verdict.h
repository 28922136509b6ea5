//===- Verdict.h - What the program verifier says of a program ------------------===//
#ifndef DS_UNITTESTS_RUNTIME_VERDICT_H
#define DS_UNITTESTS_RUNTIME_VERDICT_H

#include "ProgramBuilder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace ds::rt::test {

/// The verifier's message after `change`, or "accepted".
inline std::string verdict(Program program, const std::function<void(Program &)> &change) {
  change(program);
  Status status = verifyProgram(program);
  if (status)
    return "accepted";
  EXPECT_EQ(status.error().code, ExitCode::Corrupt);
  return status.error().message;
}

} // namespace ds::rt::test

#endif // DS_UNITTESTS_RUNTIME_VERDICT_H
