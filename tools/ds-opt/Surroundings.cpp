//===- Surroundings.cpp - What LLVM is told of its surroundings --------------------===//
//
// LLVM's streams end the process with exit code 1 when they are destroyed with an error that nobody has asked
// for, and --help and wrong options end it inside LLVM's library. Standard output is therefore looked at by
// an exit handler, which stands before the destruction of the streams.
//
//===---------------------------------------------------------------------------===//
#include "Surroundings.h"

#include "CommandLine/Notes.h"
#include "Output.h"
#include "ds/Support/RunTool.h"
#include "ds/Support/TemporaryFile.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/raw_ostream.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>

using namespace ds;
using namespace ds::opt;

/// LLVM can go no further.
static void onFatalError(void *, const char *reason, bool) {
  llvm::StringRef text(reason);
  if (text.starts_with("IO failure on output stream"))
    endWith(ExitCode::Io, reason, "free space where the output goes");
  if (text.contains("pthread_create"))
    endWithoutThread(EAGAIN);
  endWith(ExitCode::Internal, reason, "please report this");
}

static void onBadAlloc(void *, const char *, bool) { endOutOfMemory(); }

/// Everything that was printed has arrived, or the exit code says so. An error comes first.
static void onExit(int status, void *) {
  tellNotes();
  llvm::errs().clear_error(); // nobody could be told
  Status printed = finishStandardOutput();
  if (!printed && status == 0)
    endWith(printed.error().code, printed.error().message.c_str(), printed.error().hint.c_str());
}

void ds::opt::prepareSurroundings() {
  llvm::install_fatal_error_handler(onFatalError);
  llvm::install_bad_alloc_error_handler(onBadAlloc);
  llvm::outs();
  llvm::errs();
  ::on_exit(onExit, nullptr); // after both, to be called before they are destroyed
  std::signal(SIGPIPE, SIG_IGN);
  removeTemporaryFilesOnSignals();
}
