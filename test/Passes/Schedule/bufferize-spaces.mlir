// RUN: ds-opt %s --ds-bufferize --ds-insert-events --ds-verify-scheduled --ds-plan-memory --ds-verify-planned --ds-verify-collectives | FileCheck %s

// A load is a copy to the device's memory, a store one into the place of the state that it becomes, each on the stream of its
// way; events hold both to what computes, and the load of what was stored to the store. What is stored for a while lies in the host's arena.
!host = !ds.stored<tensor<8xf32>, host>
module attributes {ds.phase = #ds.phase<resident>} {
  // CHECK: ds.arena device
  // CHECK: ds.arena host bytes 128 lower_bound 128
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<8xf32>
  // CHECK: func.func @last(%[[X:[a-z0-9]+]]: {{.*}}, %[[M:[a-z0-9]+]]: !ds.buffer<tensor<8xf32>, [1], host> {ds.state = @m})
  func.func @last(%x: tensor<8xf32> {ds.input = "x"}, %m: !host {ds.state = @m}) -> (!host {ds.state = @m})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    // CHECK: %[[S:.*]] = ds.alloc activations offset {{[0-9]+}} : !ds.buffer<tensor<8xf32>, [1], host>
    // CHECK: ds.transfer %[[X]] to %[[S]] on to_host
    // CHECK-NEXT: ds.record [[SENT:[0-9]+]] on to_host
    %s = ds.store %x : tensor<8xf32> -> !host
    // CHECK: %[[L:.*]] = ds.alloc activations offset {{[0-9]+}} : !ds.buffer<tensor<8xf32>, [1], device>
    // CHECK-NOT: ds.wait
    // CHECK: ds.transfer %[[M]] to %[[L]] on to_device
    %l = ds.load %m : !host -> tensor<8xf32>
    // CHECK: ds.wait [[SENT]] on to_device
    // CHECK-NEXT: ds.transfer %[[S]] to %[[R:.*]] on to_device
    %r = ds.load %s : !host -> tensor<8xf32>
    // CHECK: ds.wait {{.*}} on compute
    // CHECK: ds.launch
    %n = ds.fused (%l, %r) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
      %c = ds.add %a, %b : tensor<8xf32>
      ds.yield %c : tensor<8xf32>
    }
    // CHECK: ds.wait {{.*}} on to_host
    // CHECK: ds.transfer %{{.*}} to %[[M]] on to_host
    %t = ds.store %n : tensor<8xf32> -> !host
    return %t : !host
  }
}
