//===- EventRecords.h - The records of TensorBoard's event files ---------------------===//
//
// An event file is a sequence of records: the length of the data in 8 bytes, a checksum of these, the data, a
// checksum of the data. The data are protocol buffers of type Event. The few fields that scalars need are
// spelt by hand: a generated encoder would bring a library for six of them.
//
//===---------------------------------------------------------------------------===//
#ifndef DS_LIB_RUNTIME_MONITOR_EVENTRECORDS_H
#define DS_LIB_RUNTIME_MONITOR_EVENTRECORDS_H

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ds::rt {

/// One value of a curve.
struct Scalar {
  std::string tag; ///< "Train/Samples/train_loss"
  double value = 0;
};

/// The Castagnoli checksum.
uint32_t crc32c(std::string_view bytes);

/// What every event file begins with.
std::string spellFirstEvent(double seconds);
/// That a run goes on at `step`: what the directory has of this step and later ones counts no more.
std::string spellRestartEvent(double seconds, uint64_t step);
/// Values at `step`, at `seconds` since 1970.
std::string spellScalarEvent(double seconds, uint64_t step, std::span<const Scalar> scalars);

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_MONITOR_EVENTRECORDS_H
