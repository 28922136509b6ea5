//===- CudaDevice.cpp - One GPU as a Device -----------------------------------------===//
#include "CudaDevice.h"

namespace ds::rt::cuda {

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(const CudaOptions &options) {
  Result<std::unique_ptr<CudaContext>> context = CudaContext::open(options);
  if (!context)
    return context.error();
  return std::unique_ptr<CudaDevice>(new CudaDevice(std::move(*context), options));
}

CudaDevice::CudaDevice(std::unique_ptr<CudaContext> opened, const CudaOptions &options)
    : context(std::move(opened)), taken(*context), queues(*context), observed(*context, queues),
      recorded(*context, queues), ranks({*context, taken, queues, observed, recorded}, options),
      bound(*context, queues, ranks) {}

/// Graphs, commands, communicators, streams, code, memory.
CudaDevice::~CudaDevice() {
  context->enter();
  ranks.leave();
  bound.unbind();
  if (!ranks.end()) { // to free anything would be to wait for ever
    bound.abandon();
    return;
  }
  observed.destroy();
  queues.destroy();
  bound.unload();
  taken.free();
  context->release();
}

Status CudaDevice::load(const Program &program, uint32_t, std::vector<GroupUse> groups) {
  ranks.use(program, std::move(groups));
  if (Status status = bound.load(program); !status)
    return status;
  if (Status status = queues.make(program); !status)
    return status;
  return observed.make(program);
}

Result<std::byte *> CudaDevice::allocate(Space space, uint64_t bytes, const char *what) {
  return taken.allocate(space, bytes, what, queues.compute());
}

/// Memory is clear before anything is timed on it.
Status CudaDevice::choose() {
  if (Status status = context->check(context->driver.streamSynchronize(queues.compute()), "clearing memory");
      !status)
    return status;
  Status status = ranks.connectAll();
  return status ? bound.choose() : status;
}

} // namespace ds::rt::cuda
