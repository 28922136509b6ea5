//===- ProgramIo.cpp - Moves .dsx files between memory and disk ----------------===//
//
// A program is written atomically: whoever opens its name sees the old program or the whole new one.
//
//===---------------------------------------------------------------------------===//
#include "ds/Runtime/Program/ProgramFile.h"

#include "ds/Runtime/Files/AtomicFile.h"
#include "ds/Runtime/Files/MappedFile.h"

namespace ds::rt {

Status writeProgram(const Program &program, const std::string &path) {
  if (Status status = verifyProgram(program); !status)
    return Error{ExitCode::Internal, "refusing to write an invalid program: " + status.error().message, ""};
  Result<std::vector<uint8_t>> bytes = serializeProgram(program);
  if (!bytes)
    return bytes.error();
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  if (Status status = file->write(std::as_bytes(std::span(*bytes))); !status)
    return status;
  return file->commit();
}

Result<Program> readProgram(const std::string &path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file)
    return file.error();
  const auto *data = reinterpret_cast<const uint8_t *>(file->bytes().data());
  return parseProgram(std::vector<uint8_t>(data, data + file->bytes().size()), path);
}

} // namespace ds::rt
