// RUN: ds-opt %s --pass-pipeline='builtin.module(func.func(ds-release-stored))' | FileCheck %s
// RUN: ds-opt %s --pass-pipeline='builtin.module(ds-set-machine{memory=3500000},func.func(ds-release-stored))' | FileCheck %s --check-prefix=FULL
// RUN: ds-opt %s --pass-pipeline='builtin.module(func.func(ds-release-stored{memory=3500000}))' | FileCheck %s --check-prefix=FULL
// RUN: ds-opt %s --pass-pipeline='builtin.module(func.func(ds-release-stored,ds-insert-events),ds-verify-scheduled)' > /dev/null
!device = !ds.buffer<tensor<262144xf32>, [1], device>
!host = !ds.buffer<tensor<262144xf32>, [1], host>
module attributes {ds.phase = #ds.phase<scheduled>} {
  ds.state @x role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<262144xf32>
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<262144xf32>

  // %y is copied to the host and not read any more: compute waits where the copy should be done, behind some kernels, or
  // at once where there is no room for %y and two others beside @x. %z is read again, and that store is not waited for.
  // CHECK-LABEL: func.func @stored
  // CHECK: ds.transfer %[[Y:.*]] to %{{.*}} on to_host
  // CHECK-NEXT: ds.record 0 on to_host
  // CHECK: ds.launch @kernel_0
  // CHECK: ds.wait 0 on compute
  // CHECK: ds.launch @kernel_0
  // CHECK: ds.transfer
  // CHECK-NOT: ds.record
  // CHECK: return
  // FULL-LABEL: func.func @stored
  // FULL: ds.transfer
  // FULL-NEXT: ds.record 0 on to_host
  // FULL-NEXT: ds.alloc
  // FULL-NEXT: ds.wait 0 on compute
  // FULL-NEXT: ds.launch @kernel_0
  func.func @stored(%x: !device {ds.state = @x}, %w: !host {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %v = ds.alloc activations : !device
    ds.launch @kernel_0 ins(%x) outs(%v) extent 262144 on compute : (!device) -> !device
    %y = ds.alloc activations : !device
    ds.launch @kernel_0 ins(%x) outs(%y) extent 262144 on compute : (!device) -> !device
    ds.transfer %y to %w on to_host : !device, !host
    %z = ds.alloc activations : !device
    ds.launch @kernel_0 ins(%v) outs(%z) extent 262144 on compute : (!device) -> !device
    ds.launch @kernel_0 ins(%z) outs(%v) extent 262144 on compute : (!device) -> !device
    ds.launch @kernel_0 ins(%v) outs(%z) extent 262144 on compute : (!device) -> !device
    ds.launch @kernel_0 ins(%z) outs(%v) extent 262144 on compute : (!device) -> !device
    ds.transfer %z to %w on to_host : !device, !host
    ds.launch @kernel_0 ins(%v) outs(%x) extent 262144 on compute : (!device) -> !device
    ds.launch @kernel_0 ins(%z) outs(%x) extent 262144 on compute : (!device) -> !device
    return
  }

  ds.kernel @kernel_0 inputs 1 buffers [!ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>] {
  ^bb0(%a: tensor<?xf32>):
    %n = ds.add %a, %a : tensor<?xf32>
    ds.yield %n : tensor<?xf32>
  }
}
