//===- Engine.h - What the plugin's files share of oneDNN ----------------------===//
#ifndef DS_LIB_RUNTIME_ONEDNN_ENGINE_H
#define DS_LIB_RUNTIME_ONEDNN_ENGINE_H

#include "ds/Runtime/Onednn/OnednnPlugin.h"

#include <dnnl.hpp>

#include <cstdio>

extern "C" void omp_set_num_threads(int numThreads);

namespace ds::rt::onednn {

inline const dnnl::engine &engine() {
  static const dnnl::engine instance(dnnl::engine::kind::cpu, 0);
  return instance;
}

inline dnnl::stream &stream() {
  static dnnl::stream instance(engine());
  return instance;
}

inline dnnl::memory wrap(const dnnl::memory::desc &desc, const void *data) {
  return {desc, engine(), const_cast<void *>(data)};
}

/// A primitive with its memory objects: running it allocates nothing.
struct Step {
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;
};

/// Scratch memory is the caller's.
inline dnnl::primitive_attr attributes() {
  dnnl::primitive_attr result;
  result.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return result;
}

/// A copy into another order.
inline dnnl::reorder::primitive_desc reorder(const dnnl::memory::desc &from, const dnnl::memory::desc &to) {
  return {engine(), from, engine(), to, attributes()};
}

/// The step of a copy whose scratch memory is at `scratch`.
inline Step copyStep(const dnnl::memory &from, const dnnl::memory &to, const void *scratch) {
  const dnnl::reorder::primitive_desc copy = reorder(from.get_desc(), to.get_desc());
  return {dnnl::reorder(copy),
          {{DNNL_ARG_FROM, from},
           {DNNL_ARG_TO, to},
           {DNNL_ARG_SCRATCHPAD, wrap(copy.scratchpad_desc(), scratch)}}};
}

/// Of the calling thread's team; scratch memory depends on it.
inline void useThreads(uint32_t threads) { omp_set_num_threads(static_cast<int>(threads)); }

/// Runs `body`, turning exceptions, which may not cross the border, into `message`.
template <class Body, class Value>
Value guarded(Value failure, char *message, size_t messageBytes, Body &&body) {
  try {
    return body();
  } catch (const std::exception &error) {
    std::snprintf(message, messageBytes, "%s", error.what());
  } catch (...) {
    std::snprintf(message, messageBytes, "unknown failure");
  }
  return failure;
}

/// Runs the steps of a primitive that was made by so many threads; false, with a message, where it fails.
template <class Primitive>
bool runSteps(Primitive &primitive, char *message, size_t messageBytes) {
  return guarded(false, message, messageBytes, [&] {
    useThreads(primitive.threads); // a property of the calling thread
    for (const Step &step : primitive.steps)
      step.primitive.execute(stream(), step.arguments);
    return true;
  });
}

// The plugin's functions for convolutions (ConvPlugin.cpp).
uint64_t convBytes(const ConvForm *form, uint32_t threads, char *message, size_t messageBytes);
ConvPrimitive *createConv(const ConvForm *form, uint32_t threads, uint64_t workspaceBytes,
                          const ConvMemory *memory, char *message, size_t messageBytes);
bool runConv(ConvPrimitive *primitive, char *message, size_t messageBytes);
void destroyConv(ConvPrimitive *primitive);

} // namespace ds::rt::onednn

#endif // DS_LIB_RUNTIME_ONEDNN_ENGINE_H
