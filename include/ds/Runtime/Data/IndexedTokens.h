//===- IndexedTokens.h - Megatron's pair of a .bin and an .idx ----------------===//
//
// The .bin is nothing but tokens, sequence after sequence. The .idx says what they are: magic and version,
// a code for the element type, how many sequences and document borders there are, then the sequences'
// lengths, where each begins, and at which sequence each document begins. All of that is checked against
// the two files' sizes, and nothing of the tokens is read: the price is one pass over the .idx, of
// which little is in memory at a time.
//
// Writers put the sequences side by side in order, so the .bin is the documents' concatenation as it stands.
// An index that leaves holes or reorders is refused.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_DATA_INDEXEDTOKENS_H
#define DS_RUNTIME_DATA_INDEXEDTOKENS_H

#include "ds/Runtime/Files/MappedFile.h"
#include "ds/Runtime/Formats/FileDType.h"
#include "ds/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ds::rt {

/// A verified pair, mapped.
class IndexedTokens {
public:
  /// Corrupt: not such an index, or counts, lengths, positions, documents and sizes do not agree. Invalid: it
  /// is one, but of floats or of several modalities. Io: one of the two could not be read.
  static Result<IndexedTokens> open(const std::string &indexPath, const std::string &dataPath);

  uint64_t size() const { return count; } ///< tokens
  uint64_t numDocuments() const { return documents; }
  FileDType dtype() const { return type; }
  std::span<const std::byte> data() const { return tokens.bytes(); }
  const MappedFile &index() const { return indexFile; }
  const MappedFile &mapped() const { return tokens; }

private:
  IndexedTokens() = default;
  MappedFile indexFile, tokens;
  FileDType type = FileDType::U16;
  uint64_t count = 0, documents = 0;
};

} // namespace ds::rt

#endif // DS_RUNTIME_DATA_INDEXEDTOKENS_H
