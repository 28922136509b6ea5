// RUN: ds-opt %s --ds-schedule-communication | FileCheck %s
// RUN: ds-opt %s --pass-pipeline='builtin.module(ds-schedule-communication,func.func(ds-prefetch-loads,ds-insert-events),ds-verify-scheduled,ds-verify-collectives)' > /dev/null

!part = !ds.buffer<tensor<262144xf32>, [1], device>
!whole = !ds.buffer<tensor<524288xf32>, [1], device>
!home = !ds.buffer<tensor<262144xf32>, [1], host>

// A shard that is loaded for a gather goes with it: the gather runs ahead beside the copies of other memory.
module attributes {ds.phase = #ds.phase<scheduled>} {
  ds.mesh @mesh axes [dp = 2]
  ds.schedule stage 0 [#ds.run<@ahead, first 0, count 1, gradients set>]
  ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<262144xf32>
  ds.state @q role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<262144xf32>

  // CHECK-LABEL: func.func @ahead
  // CHECK: %[[SHARD:.*]] = ds.alloc communication : !ds.buffer<tensor<262144xf32>
  // CHECK-NEXT: ds.transfer %{{.*}} to %[[SHARD]]
  // CHECK-NEXT: %[[FULL:.*]] = ds.alloc communication
  // CHECK-NEXT: ds.communicate all_gather ins(%[[SHARD]]) outs(%[[FULL]])
  // CHECK: ds.call copy(%{{.*}}, %{{.*}}) writes [1]
  // CHECK: ds.call copy(%[[FULL]], %{{.*}}) writes [1]
  func.func @ahead(%p: !home {ds.state = @p}, %q: !home {ds.state = @q}, %x: !whole {ds.input = "x"}, %y: !whole {ds.input = "y"},
                   %z: !part {ds.input = "z"}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    ds.call copy(%x, %y) writes [1] params [] on compute : !whole, !whole
    ds.call copy(%y, %x) writes [1] params [] on compute : !whole, !whole
    ds.call copy(%x, %y) writes [1] params [] on compute : !whole, !whole
    %s = ds.alloc communication : !part
    ds.transfer %p to %s on to_device : !home, !part
    %f = ds.alloc communication : !whole
    ds.communicate all_gather ins(%s) outs(%f) along dp carries parameter on gather : (!part) -> !whole
    ds.call copy(%f, %y) writes [1] params [] on compute : !whole, !whole
    return
  }

  // What is written back before it is loaded cannot come earlier.
  // CHECK-LABEL: func.func @behind
  // CHECK: ds.call copy
  // CHECK: ds.transfer %{{.*}} on to_host
  // CHECK: ds.call copy
  // CHECK: ds.transfer %{{.*}} on to_device
  // CHECK: ds.communicate all_gather
  func.func @behind(%q: !home {ds.state = @q}, %x: !whole {ds.input = "x"}, %y: !whole {ds.input = "y"},
                    %z: !part {ds.input = "z"}) attributes {ds.segment = #ds.segment<forward>} {
    ds.call copy(%x, %y) writes [1] params [] on compute : !whole, !whole
    ds.transfer %z to %q on to_host : !part, !home
    ds.call copy(%y, %x) writes [1] params [] on compute : !whole, !whole
    %s = ds.alloc communication : !part
    ds.transfer %q to %s on to_device : !home, !part
    %f = ds.alloc communication : !whole
    ds.communicate all_gather ins(%s) outs(%f) along dp carries parameter on gather : (!part) -> !whole
    ds.call copy(%f, %y) writes [1] params [] on compute : !whole, !whole
    return
  }
}
