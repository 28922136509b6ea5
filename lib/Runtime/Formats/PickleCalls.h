//===- PickleCalls.h - What a pickle would call -----------------------------------===//
#ifndef DS_LIB_RUNTIME_FORMATS_PICKLECALLS_H
#define DS_LIB_RUNTIME_FORMATS_PICKLECALLS_H

#include "PickleValues.h"

namespace ds::rt {

/// Makes what calls would give. Nothing is called. A value that is kNoRef comes with a fault.
class PickleCalls {
public:
  PickleCalls(PickleValues &values, PickleFault &fault)
      : values(values), tables(values.tables), fault(fault) {}

  PickleRef call(PickleRef callee, PickleRef arguments);
  /// What torch refers to by `id`: ('storage', type, key, location, number of elements), where it puts the
  /// bytes of tensors.
  PickleRef storage(PickleRef id);

private:
  PickleRef callKnown(PickleRef callee, PickleRef arguments);
  PickleRef rebuildTensor(PickleRef callee, PickleRef arguments, bool hasDtype);
  PickleRef rebuildFromType(PickleRef callee, PickleRef arguments);
  /// The integers of a tuple of at most kMaxPickleRank that are not negative.
  bool readExtents(PickleRef tuple, std::vector<int64_t> &out, const char *what);
  PickleRef fail(std::string text) {
    fault.fail(std::move(text));
    return kNoRef;
  }

  PickleValues &values;
  PickleTables &tables;
  PickleFault &fault;
};

} // namespace ds::rt

#endif // DS_LIB_RUNTIME_FORMATS_PICKLECALLS_H
