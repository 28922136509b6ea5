//===- Tell.cpp - What ds-ckpt says, and where ------------------------------------===//
#include "Tell.h"

#include "ds/Support/Messages.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <unistd.h>

int report(const ds::Error &error) {
  std::fputs(ds::spellError("ds-ckpt", error, ds::terminalColumns(STDERR_FILENO)).c_str(), stderr);
  return static_cast<int>(error.code);
}

void note(const std::string &text) { std::fprintf(stderr, "ds-ckpt: %s\n", ds::printableText(text).c_str()); }

void print(const std::string &raw) {
  const std::string text = ds::printableText(raw);
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return;
  throw Refusal{{ds::ExitCode::Io, std::string("cannot write to standard output: ") + std::strerror(errno),
                 "free space where it goes"}};
}
