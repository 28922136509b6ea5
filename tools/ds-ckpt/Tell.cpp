//===- Tell.cpp - What ds-ckpt says, and where ------------------------------------===//
#include "Tell.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

int report(const ds::Error &error) {
  std::fprintf(stderr, "ds-ckpt: error: %s\n", error.message.c_str());
  if (!error.hint.empty())
    std::fprintf(stderr, "  hint: %s\n", error.hint.c_str());
  return static_cast<int>(error.code);
}

void note(const std::string &text) { std::fprintf(stderr, "ds-ckpt: %s\n", text.c_str()); }

void print(const std::string &text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return;
  throw Refusal{{ds::ExitCode::Io, std::string("cannot write to standard output: ") + std::strerror(errno),
                 "free space where it goes"}};
}
