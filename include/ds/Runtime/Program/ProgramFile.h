//===- ProgramFile.h - Programs as .dsx files, and what makes one valid --------===//
//
// A .dsx file is a 32-byte header (magic, format version, payload size, XXH3 of the payload) and a
// FlatBuffers payload. Reading trusts nothing: the checksum finds damage, the FlatBuffers verifier finds bad
// structure, and verifyProgram finds what is well formed but would touch memory that it must not. The kernel
// image is machine code: a .dsx file must be trusted like an executable, whatever is checked here.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_RUNTIME_PROGRAM_PROGRAMFILE_H
#define DS_RUNTIME_PROGRAM_PROGRAMFILE_H

#include "ds/Runtime/Program/Program.h"
#include "ds/Support/Error.h"

#include <string>
#include <vector>

namespace ds::rt {

/// Format version that this build writes and the only one that it reads.
inline constexpr uint32_t kProgramFormat = 10;

/// The bytes of the file that holds `program`. The program need not be valid. Fails above 2 GiB.
Result<std::vector<uint8_t>> serializeProgram(const Program &program);

/// The program that `bytes` (a whole file) hold, verified. `name` is used in diagnostics only.
Result<Program> parseProgram(const std::vector<uint8_t> &bytes, const std::string &name);

/// Writes `program` as `path`, under a temporary name first: a failure leaves no partial file. The program
/// must be valid; one that is not is refused with ExitCode::Internal, for the compiler made it.
Status writeProgram(const Program &program, const std::string &path);

/// Reads and verifies the program in `path`.
Result<Program> readProgram(const std::string &path);

/// Checks every index, offset, size, shape and dtype of `program`, that buffers lie inside the arenas and
/// inside a lifetime that holds them while they are used, on every rank, that no two lifetimes share a byte
/// at one time, that events are recorded before they are waited for, that library commands have the operands
/// that Library.h documents and collectives those that Program.h does. Fails with ExitCode::Corrupt, naming
/// the first entry that is wrong, its value and the limit.
Status verifyProgram(const Program &program);

/// Hex digest of everything but the predictions and the digest itself, for Program::planHash.
std::string hashPlan(const Program &program);

/// Bytes from element (0, ..., 0) to the end of the last element: 0 when a dimension is 0. Requires a buffer
/// that verifyProgram accepts.
uint64_t extentBytes(const Buffer &buffer);

/// Bytes from the buffer's first window to the end of its last one, over all ranks and slots: 0 when the
/// buffer is empty. Requires a buffer that verifyProgram accepts in a program of this mesh.
uint64_t reachBytes(const Buffer &buffer, const Mesh &mesh);

/// Bytes from the start of the arena to element (0, ..., 0), on `rank` while `microBatch` is worked on.
/// Requires what reachBytes does.
uint64_t windowOffset(const Buffer &buffer, const Mesh &mesh, uint32_t rank, uint32_t microBatch);

/// All bits that are set in the offset of any of the buffer's windows, or in a distance between them: a power
/// of two divides every window's offset if, and only if, it divides this.
uint64_t offsetBits(const Buffer &buffer);

/// Number of elements. Requires a buffer that verifyProgram accepts.
int64_t numElements(const Buffer &buffer);

/// Whether the buffer is packed in row-major order (dimensions of size 1 may have any stride).
bool isContiguous(const Buffer &buffer);

} // namespace ds::rt

#endif // DS_RUNTIME_PROGRAM_PROGRAMFILE_H
