//===- IndexedTokens.cpp - Megatron's pair of a .bin and an .idx --------------===//

#include "ds/Runtime/Data/IndexedTokens.h"

#include "Files/Text.h"

#include <fmt/format.h>

#include <cstring>
#include <string_view>

using namespace ds;
using namespace ds::rt;

namespace {

constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
constexpr size_t kHeaderBytes = 9 + 8 + 1 + 8 + 8; // magic, version, type, sequences, borders

/// Element types by their codes, which begin at 1.
constexpr FileDType kTypes[] = {FileDType::U8,  FileDType::I8,  FileDType::I16, FileDType::I32,
                                FileDType::I64, FileDType::F64, FileDType::F32, FileDType::U16};

/// The number at byte `offset`, which nothing aligns.
template <class T>
T at(std::span<const std::byte> bytes, uint64_t offset) {
  T value;
  memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

/// An index whose parts are known to lie inside the file.
struct Index {
  const MappedFile &file;
  std::span<const std::byte> bytes = file.bytes();
  FileDType type = FileDType::U16;
  uint64_t sequences = 0, borders = 0;

  Error corrupt(const std::string &what) const {
    return {ExitCode::Corrupt, quote(file.path()) + ": " + what,
            "write the pair again with Megatron's own tool"};
  }
  /// In loops over an index that may be larger than memory.
  void forget(uint64_t turn) const {
    if (turn % (1 << 16) == 0)
      file.forget();
  }
  uint64_t lengths() const { return kHeaderBytes; }
  uint64_t positions() const { return lengths() + 4 * sequences; }
  uint64_t documents() const { return positions() + 8 * sequences; }

  Status readHeader();
  Status checkSize() const;
  Result<uint64_t> checkSequences(const MappedFile &data) const;
  Status checkDocuments() const;
};

} // namespace

Status Index::readHeader() {
  if (bytes.size() < kHeaderBytes || memcmp(bytes.data(), kMagic.data(), kMagic.size()) != 0)
    return corrupt("is no index of a token file: it does not begin with 'MMIDIDX' and a header of " +
                   std::to_string(kHeaderBytes) + " bytes");
  if (const auto version = at<uint64_t>(bytes, 9); version != 1)
    return corrupt("expects version 1, but got " + std::to_string(version));
  const auto code = at<uint8_t>(bytes, 17);
  if (code == 0 || code > std::size(kTypes))
    return corrupt("expects a type code from 1 to 8, but got " + std::to_string(code));
  type = kTypes[code - 1];
  if (!isInteger(type))
    return Error{ExitCode::Invalid,
                 quote(file.path()) + ": is of " + std::string(spell(type)) + ", not of tokens",
                 "give a file of token ids"};
  sequences = at<uint64_t>(bytes, 18);
  borders = at<uint64_t>(bytes, 26);
  return checkSize();
}

Status Index::checkSize() const {
  const auto wanted = kHeaderBytes + (unsigned __int128)sequences * 12 + (unsigned __int128)borders * 8;
  if (bytes.size() == wanted)
    return {};
  if (bytes.size() == wanted + sequences)
    return Error{ExitCode::Invalid,
                 quote(file.path()) + ": has modes of its sequences, as data of several modalities has",
                 "only text is read: write an index without modes"};
  return corrupt(fmt::format("{} sequences and {} document borders take {} bytes with the header, but the "
                             "file has {}",
                             sequences, borders,
                             wanted > UINT64_MAX ? "2^64 or more" : std::to_string(uint64_t(wanted)),
                             bytes.size()));
}

/// The number of tokens, if the sequences fill the .bin one after another.
Result<uint64_t> Index::checkSequences(const MappedFile &data) const {
  const uint64_t width = bitSize(type) / 8;
  uint64_t position = 0; // no overflow: within the data at each turn
  for (uint64_t i = 0; i < sequences; ++i) {
    forget(i);
    const auto length = at<int32_t>(bytes, lengths() + 4 * i);
    if (length < 0)
      return corrupt(fmt::format("sequence {} has a length of {}", i, length));
    if (const auto begin = at<int64_t>(bytes, positions() + 8 * i); begin != int64_t(position))
      return corrupt(
          fmt::format("sequence {} begins at byte {}, but those before it end at {}", i, begin, position));
    position += uint64_t(length) * width;
    if (position > data.bytes().size())
      return corrupt(fmt::format("sequence {} ends at byte {}, but {} has {}", i, position,
                                 quote(data.path()), data.bytes().size()));
  }
  if (position != data.bytes().size())
    return corrupt(fmt::format("the sequences take {} bytes, but {} has {}", position, quote(data.path()),
                               data.bytes().size()));
  return position / width;
}

/// Borders lead from sequence 0 to the last one's end and never back.
Status Index::checkDocuments() const {
  if (borders == 0)
    return corrupt("has no document borders, not even the first");
  uint64_t before = 0;
  for (uint64_t i = 0; i < borders; ++i) {
    forget(i);
    const auto border = at<uint64_t>(bytes, documents() + 8 * i);
    if (border < before || border > sequences || (i == 0 && border != 0))
      return corrupt(fmt::format("document border {} is at sequence {}, but expects {} to {}", i,
                                 int64_t(border), before, i == 0 ? 0 : sequences));
    before = border;
  }
  if (before != sequences)
    return corrupt(fmt::format("the last document ends at sequence {} of {}", before, sequences));
  return {};
}

Result<IndexedTokens> IndexedTokens::open(const std::string &indexPath, const std::string &dataPath) {
  IndexedTokens pair;
  Result<MappedFile> file = MappedFile::open(indexPath);
  if (!file)
    return file.error();
  pair.indexFile = std::move(*file);
  Index index{pair.indexFile};
  if (Status status = index.readHeader(); !status)
    return status.error();
  Result<MappedFile> data = MappedFile::open(dataPath);
  if (!data)
    return data.error();
  pair.tokens = std::move(*data);
  Result<uint64_t> count = index.checkSequences(pair.tokens);
  if (!count)
    return count.error();
  if (Status status = index.checkDocuments(); !status)
    return status.error();
  pair.indexFile.forget();
  pair.type = index.type;
  pair.count = *count;
  pair.documents = index.borders - 1;
  return pair;
}
