// RUN: ds-opt %s --ds-offload-updates --ds-place-states | FileCheck %s
// RUN: ds-opt %s --ds-offload-updates --ds-place-states --ds-fuse-regions --ds-verify-fused -o %t.mlir

// A moment in storage is moved to the host right before it is updated there, and back: the device sees neither. What the
// device reads of the new value is loaded of what the host has made.
module attributes {ds.phase = #ds.phase<fused>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @w.exp_avg role(moment) slot("exp_avg") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(nvme) : tensor<8xf32>
  // CHECK-LABEL: func.func @last
  // CHECK-SAME: %[[G:[a-z0-9]+]]: tensor<8xf32> {ds.input = "g"}, %[[W:[a-z0-9]+]]: tensor<8xf32> {ds.state = @w}
  // CHECK-SAME: %[[M:[a-z0-9]+]]: !ds.stored<tensor<8xf32>, nvme> {ds.state = @w.exp_avg}
  // CHECK: ds.tanh
  // CHECK: %[[HERE:.*]] = ds.move %[[M]] {ds.work = #ds.work<update>} : !ds.stored<tensor<8xf32>, nvme> -> !ds.stored<tensor<8xf32>, host>
  // CHECK-NEXT: %[[NEW:.*]] = ds.host(%[[HERE]], %{{.*}})
  // CHECK: %[[BACK:.*]] = ds.move %[[NEW]] {ds.work = #ds.work<update>} : !ds.stored<tensor<8xf32>, host> -> !ds.stored<tensor<8xf32>, nvme>
  // CHECK: %[[STEP:.*]] = ds.load %[[NEW]]
  // CHECK: %[[V:.*]] = ds.sub %[[W]], %[[STEP]]
  // CHECK: return %[[V]], %[[BACK]]
  func.func @last(%g: tensor<8xf32> {ds.input = "g"}, %w: tensor<8xf32> {ds.state = @w}, %m: tensor<8xf32> {ds.state = @w.exp_avg})
      -> (tensor<8xf32> {ds.state = @w}, tensor<8xf32> {ds.state = @w.exp_avg})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %t = ds.tanh %g {ds.work = #ds.work<backward>} : tensor<8xf32>
    %n = ds.add %m, %t {ds.work = #ds.work<update>} : tensor<8xf32>
    %v = ds.sub %w, %n {ds.work = #ds.work<update>} : tensor<8xf32>
    return %v, %n : tensor<8xf32>, tensor<8xf32>
  }
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set, reduced true>]
}
