// RUN: ds-opt %s --ds-fuse-regions --ds-order-issue --ds-bufferize --ds-insert-events --ds-verify-scheduled --ds-plan-memory --ds-verify-planned --ds-verify-collectives | FileCheck %s

// A region of ops on the host becomes commands of the stream host, on buffers of the host alone: the new moment is made in
// the state's place, and events hold the update between the copy that brings the gradient and the one that takes the result.
!host = !ds.stored<tensor<8xf32>, host>
module attributes {ds.phase = #ds.phase<resident>} {
  ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<8xf32>
  // CHECK: func.func @last(%[[G:[a-z0-9]+]]: {{.*}}, %[[M:[a-z0-9]+]]: !ds.buffer<tensor<8xf32>, [1], host> {ds.state = @m}, %[[W:[a-z0-9]+]]: {{.*}} {ds.state = @w})
  func.func @last(%g: tensor<8xf32> {ds.input = "x"}, %m: !host {ds.state = @m}) -> (!host {ds.state = @m}, tensor<8xf32> {ds.state = @w})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    // CHECK: ds.transfer %[[G]] to %[[S:.*]] on to_host
    // CHECK: ds.record [[SENT:[0-9]+]] on to_host
    %s = ds.store %g {ds.work = #ds.work<update>} : tensor<8xf32> -> !host
    // CHECK: ds.wait [[SENT]] on host
    // CHECK: ds.launch @[[K:.*]] ins(%[[M]], %[[S]]) outs(%[[M]]{{.*}}) extent 8 on host {ds.work = #ds.work<update>}
    // CHECK: ds.record [[MADE:[0-9]+]] on host
    %n:2 = ds.host(%m, %s) {ds.work = #ds.work<update>} : (!host, !host) -> (!host, !host) {
    ^bb0(%x: tensor<8xf32>, %y: tensor<8xf32>):
      %a = ds.add %x, %y : tensor<8xf32>
      %b = ds.mul %a, %y : tensor<8xf32>
      ds.yield %a, %b : tensor<8xf32>, tensor<8xf32>
    }
    // CHECK: ds.wait [[MADE]] on to_device
    // CHECK: ds.transfer %{{.*}} to %[[W]] on to_device
    %l = ds.load %n#1 {ds.work = #ds.work<update>} : !host -> tensor<8xf32>
    return %n#0, %l : !host, tensor<8xf32>
  }
  // CHECK: ds.kernel @[[K]] inputs 2 buffers [!ds.buffer<tensor<?xf32>, [1], host>, !ds.buffer<tensor<?xf32>, [1], host>,
}
