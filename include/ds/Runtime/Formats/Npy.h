//===- Npy.h - One array in numpy's own format ---------------------------------===//
//
// Magic, version, a Python dictionary as text, and the bytes. Only what can be mapped as it stands is read:
// packed row-major little-endian numbers. Pickled objects are refused, for reading them would run code.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_FORMATS_NPY_H
#define DS_RUNTIME_FORMATS_NPY_H

#include "ds/Runtime/Files/MappedFile.h"
#include "ds/Runtime/Formats/FileDType.h"
#include "ds/Support/Error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ds::rt {

/// A verified array, mapped.
class NpyFile {
public:
  /// Corrupt: not a .npy file, or its size is not what its header says. Invalid: an array that we do not read
  /// (objects, records, big-endian, Fortran order). Io: it could not be read.
  static Result<NpyFile> open(const std::string &path);

  FileDType dtype() const { return type; }
  std::span<const int64_t> shape() const { return dims; }
  std::span<const std::byte> data() const { return file.bytes().subspan(dataOffset); } ///< may be unaligned
  const MappedFile &mapped() const { return file; }

private:
  NpyFile() = default;
  MappedFile file;
  FileDType type = FileDType::F32;
  std::vector<int64_t> dims;
  size_t dataOffset = 0;
};

} // namespace ds::rt

#endif // DS_RUNTIME_FORMATS_NPY_H
