//===- AppendedFile.h - A file that grows while a run goes on -------------------===//
//
// What is written is there when `write` returns, so that a reader may follow the file and a killed run loses
// nothing. A log is never worth a training run: when writing fails the run is warned once and goes on. A
// record that was cut off by a full disk is taken back, and later ones are tried again; a closed pipe is not.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_FILES_APPENDEDFILE_H
#define DS_RUNTIME_FILES_APPENDEDFILE_H

#include "ds/Support/Descriptor.h"
#include "ds/Support/Error.h"

#include <functional>
#include <string>

namespace ds::rt {

/// One thread at a time.
class AppendedFile {
public:
  using Warning = std::function<void(std::string)>;

  struct Form {
    std::string what;     ///< for messages: "log"
    std::string option;   ///< that names it: "--log-jsonl"
    bool append = false;  ///< a resumed run: what is there stays
    bool hasLines = true; ///< records end with a newline; a last one that does not is dropped
  };

  /// Io: the file cannot be opened. Without `append` the file starts empty, and what an earlier run has left
  /// there is renamed ("log.jsonl" to "log.1.jsonl", or the next number that is free) and told to `warning`.
  static Result<AppendedFile> open(const std::string &path, Form form, Warning warning);

  /// Writes one record. Never fails: see above.
  void write(const std::string &bytes);

private:
  AppendedFile() = default;
  void dropTornLine();
  void giveUp(int errorNumber);

  std::string path;
  Form form;
  Warning warning;
  Descriptor file; ///< none also once the reader has gone
  bool warned = false;
  bool torn = false; ///< the file ends inside a record that could not be taken back
};

} // namespace ds::rt

#endif // DS_RUNTIME_FILES_APPENDEDFILE_H
