//===- StartUp.h - Short signs of what a rank starts with -----------------------===//
#ifndef DS_LIB_RUNTIME_TRAINING_STARTUP_H
#define DS_LIB_RUNTIME_TRAINING_STARTUP_H

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace ds::rt {

/// A digest of this process's executable: the same build has the same.
std::string executableSign();

/// Size of a file and a digest of its first MiB, which has the header of a weights file; "no file" if it
/// cannot be read.
std::string fileSign(const std::string &path);

/// Adds `bytes` to the digest `sign`.
uint64_t addToSign(uint64_t sign, std::span<const std::byte> bytes);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_TRAINING_STARTUP_H
