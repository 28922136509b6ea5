//===- Tell.h - What ds-ckpt says, and where --------------------------------------===//
#ifndef DS_TOOLS_DSCKPT_TELL_H
#define DS_TOOLS_DSCKPT_TELL_H

#include "ds/Support/Error.h"

#include <string>

/// Carries an error of ours out of the parser and out of commands, to the exit code.
struct Refusal {
  ds::Error error;
};

/// The value, or the way out.
template <class T>
T orExit(ds::Result<T> result) {
  if (!result)
    throw Refusal{result.error()};
  return std::move(*result);
}

/// Tells the user of an error; returns its exit code.
int report(const ds::Error &error);

/// A line of the log.
void note(const std::string &text);

/// A part of the result. Throws a Refusal where nobody takes it.
void print(const std::string &text);

#endif // DS_TOOLS_DSCKPT_TELL_H
