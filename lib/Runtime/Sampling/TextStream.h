//===- TextStream.h - Text on stdout, as it comes --------------------------------------===//
#ifndef DS_LIB_RUNTIME_SAMPLING_TEXTSTREAM_H
#define DS_LIB_RUNTIME_SAMPLING_TEXTSTREAM_H

#include "ds/Support/Error.h"

#include <string>
#include <string_view>

namespace ds::rt {

/// Writes whole characters: what ends within one waits for the rest. On a terminal control characters are
/// shown as \xNN, for a model may write any; elsewhere bytes are what they are.
class TextStream {
public:
  TextStream();
  /// Io: nobody can be written to.
  Status write(std::string_view bytes);
  /// Writes what waits, and ends the line.
  Status end();

private:
  Status flush(size_t count);

  std::string waiting;
  bool isTerminal;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_SAMPLING_TEXTSTREAM_H
