// RUN: ds-opt %s --pass-pipeline='builtin.module(func.func(ds-prefetch-loads))' | FileCheck %s
// RUN: ds-opt %s --pass-pipeline='builtin.module(ds-set-machine{memory=4194304},func.func(ds-prefetch-loads))' | FileCheck %s --check-prefix=ROOM
// RUN: ds-opt %s --pass-pipeline='builtin.module(ds-set-machine{memory=3500000},func.func(ds-prefetch-loads))' | FileCheck %s --check-prefix=FULL
// RUN: ds-opt %s --pass-pipeline='builtin.module(func.func(ds-prefetch-loads{memory=3500000}))' | FileCheck %s --check-prefix=FULL
// RUN: ds-opt %s --pass-pipeline='builtin.module(func.func(ds-prefetch-loads,ds-insert-events),ds-verify-scheduled)' > /dev/null
!device = !ds.buffer<tensor<262144xf32>, [1], device>
!host = !ds.buffer<tensor<262144xf32>, [1], host>
module attributes {ds.phase = #ds.phase<scheduled>} {
  ds.state @x role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<262144xf32>
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<262144xf32>

  // The load of %w is moved ahead of what computes before its reader, by as much as its copy takes, twice: two kernels
  // that move as many bytes, and no further. With a MiB for each of @x, %y, %z and %l, 4 MiB have room for it there, and less
  // have not.
  // CHECK-LABEL: func.func @ahead
  // CHECK: ds.launch @kernel_0
  // CHECK: ds.transfer
  // CHECK: ds.launch @kernel_0
  // CHECK: ds.launch @kernel_0
  // CHECK: ds.launch @kernel_1
  // ROOM-LABEL: func.func @ahead
  // ROOM: ds.launch @kernel_0
  // ROOM: ds.transfer
  // ROOM: ds.launch @kernel_0
  // FULL-LABEL: func.func @ahead
  // FULL: ds.launch @kernel_0
  // FULL: ds.launch @kernel_0
  // FULL: ds.launch @kernel_0
  // FULL: ds.transfer
  // FULL: ds.launch @kernel_1
  func.func @ahead(%x: !device {ds.state = @x}, %w: !host {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %y = ds.alloc activations : !device
    ds.launch @kernel_0 ins(%x) outs(%y) extent 262144 on compute : (!device) -> !device
    %z = ds.alloc activations : !device
    ds.launch @kernel_0 ins(%y) outs(%z) extent 262144 on compute : (!device) -> !device
    ds.launch @kernel_0 ins(%z) outs(%y) extent 262144 on compute : (!device) -> !device
    %l = ds.alloc activations : !device
    ds.transfer %w to %l on to_device : !host, !device
    ds.launch @kernel_1 ins(%y, %l) outs(%x) extent 262144 on compute : (!device, !device) -> !device
    return
  }

  // A load does not overtake what stores what it reads, nor does the next load overtake it.
  // CHECK-LABEL: func.func @behind
  // CHECK: ds.launch @kernel_0
  // CHECK: ds.transfer %{{.*}} to %[[W:.*]] on to_host : !ds.buffer<{{.*}}, device>, !ds.buffer<{{.*}}, host>
  // CHECK: ds.transfer %[[W]] to %[[L:.*]] on to_device
  // CHECK: ds.transfer %[[W]] to %[[K:.*]] on to_device
  // CHECK: ds.launch @kernel_0
  // CHECK: ds.launch @kernel_1 ins(%[[L]], %[[K]])
  func.func @behind(%x: !device {ds.state = @x}, %w: !host {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %y = ds.alloc activations : !device
    ds.launch @kernel_0 ins(%x) outs(%y) extent 262144 on compute : (!device) -> !device
    ds.transfer %y to %w on to_host : !device, !host
    %z = ds.alloc activations : !device
    ds.launch @kernel_0 ins(%y) outs(%z) extent 262144 on compute : (!device) -> !device
    %l = ds.alloc activations : !device
    ds.transfer %w to %l on to_device : !host, !device
    %k = ds.alloc activations : !device
    ds.transfer %w to %k on to_device : !host, !device
    ds.launch @kernel_1 ins(%l, %k) outs(%x) extent 262144 on compute : (!device, !device) -> !device
    return
  }

  // A store of something else, on the stream of the other way, is no hindrance: the load begins two kernels ahead.
  // CHECK-LABEL: func.func @beside
  // CHECK: ds.transfer %{{.*}} on to_device
  // CHECK: ds.launch @kernel_0
  // CHECK: ds.transfer %{{.*}} on to_host
  // CHECK: ds.launch @kernel_0
  // CHECK: ds.launch @kernel_1
  func.func @beside(%x: !device {ds.state = @x}, %w: !host {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %y = ds.alloc activations : !device
    ds.launch @kernel_0 ins(%x) outs(%y) extent 262144 on compute : (!device) -> !device
    %h = ds.alloc activations : !host
    ds.transfer %y to %h on to_host : !device, !host
    %z = ds.alloc activations : !device
    ds.launch @kernel_0 ins(%y) outs(%z) extent 262144 on compute : (!device) -> !device
    %l = ds.alloc activations : !device
    ds.transfer %w to %l on to_device : !host, !device
    ds.launch @kernel_1 ins(%z, %l) outs(%x) extent 262144 on compute : (!device, !device) -> !device
    return
  }

  // What was loaded is gone when its reader has run, though no event tells so yet: of the 4 MiB that there are @x, %y and %z
  // have three while the next load is on its way.
  // ROOM-LABEL: func.func @again
  // ROOM: ds.transfer
  // ROOM: ds.launch @kernel_1
  // ROOM: ds.transfer
  // ROOM: ds.launch @kernel_0
  // ROOM: ds.launch @kernel_0
  // ROOM: ds.launch @kernel_1
  func.func @again(%x: !device {ds.state = @x}, %w: !host {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %l = ds.alloc activations : !device
    ds.transfer %w to %l on to_device : !host, !device
    %y = ds.alloc activations : !device
    ds.launch @kernel_1 ins(%x, %l) outs(%y) extent 262144 on compute : (!device, !device) -> !device
    %z = ds.alloc activations : !device
    ds.launch @kernel_0 ins(%y) outs(%z) extent 262144 on compute : (!device) -> !device
    ds.launch @kernel_0 ins(%z) outs(%y) extent 262144 on compute : (!device) -> !device
    %k = ds.alloc activations : !device
    ds.transfer %w to %k on to_device : !host, !device
    ds.launch @kernel_1 ins(%y, %k) outs(%x) extent 262144 on compute : (!device, !device) -> !device
    return
  }

  ds.kernel @kernel_0 inputs 1 buffers [!ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>] {
  ^bb0(%a: tensor<?xf32>):
    %n = ds.add %a, %a : tensor<?xf32>
    ds.yield %n : tensor<?xf32>
  }
  ds.kernel @kernel_1 inputs 2 buffers [!ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>] {
  ^bb0(%a: tensor<?xf32>, %b: tensor<?xf32>):
    %n = ds.add %a, %b : tensor<?xf32>
    ds.yield %n : tensor<?xf32>
  }
}
