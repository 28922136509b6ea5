// RUN: ds-opt %s --ds-offload-updates | FileCheck %s --check-prefix=REGIONS
// RUN: ds-opt %s --ds-offload-updates --ds-place-states | FileCheck %s
// RUN: ds-opt %s --ds-offload-updates --ds-place-states --ds-fuse-regions --ds-verify-fused -o %t.mlir

// The moment lives on the host. What makes its new value of the gradient runs there, and so does what is subtracted from
// the parameter; the parameter is not sent there: its last op stays on the device. The gradient is stored as soon as it
// is made, not what is clipped of it, and the rate is a scalar that the host needs.
// REGIONS-LABEL: func.func @last
// REGIONS: %[[G:.*]] = ds.matmul
// REGIONS: ds.host
// REGIONS: ds.load
// REGIONS: ds.sub
module attributes {ds.phase = #ds.phase<fused>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4x8xf32>
  ds.state @w.exp_avg role(moment) slot("exp_avg") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<4x8xf32>
  ds.state @lr role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
  // CHECK-LABEL: func.func @last
  // CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4x8xf32> {ds.state = @w}
  // CHECK-SAME: %[[M:[a-z0-9]+]]: !ds.stored<tensor<4x8xf32>, host> {ds.state = @w.exp_avg}
  // CHECK-SAME: %[[LR:[a-z0-9]+]]: tensor<f32> {ds.state = @lr}
  // CHECK-DAG: %[[RATE:.*]] = ds.store %[[LR]]
  // CHECK-DAG: %[[G:.*]] = ds.matmul
  // CHECK-DAG: %[[SENT:.*]] = ds.store %[[G]]
  // CHECK: %[[NEW:.*]]:2 = ds.host(%[[SENT]], %[[M]], %[[RATE]])
  // CHECK: ds.constant
  // CHECK: ds.mul
  // CHECK: ds.add
  // CHECK: ds.broadcast
  // CHECK: ds.mul
  // CHECK: ds.yield
  // CHECK: %[[STEP:.*]] = ds.load %[[NEW]]#1
  // CHECK: %[[V:.*]] = ds.sub %[[W]], %[[STEP]]
  // CHECK: return %[[V]], %[[NEW]]#0
  func.func @last(%x: tensor<2x4xf32> {ds.input = "x"}, %d: tensor<2x8xf32> {ds.input = "d"},
                  %w: tensor<4x8xf32> {ds.state = @w}, %m: tensor<4x8xf32> {ds.state = @w.exp_avg},
                  %lr: tensor<f32> {ds.state = @lr})
      -> (tensor<4x8xf32> {ds.state = @w}, tensor<4x8xf32> {ds.state = @w.exp_avg})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %g = ds.matmul %x, %d transpose_lhs {ds.work = #ds.work<backward>} : tensor<2x4xf32>, tensor<2x8xf32> -> tensor<4x8xf32>
    %c = ds.constant dense<5.000000e-01> : tensor<4x8xf32>
    %h = ds.mul %g, %c {ds.work = #ds.work<update>} : tensor<4x8xf32>
    %n = ds.add %m, %h {ds.work = #ds.work<update>} : tensor<4x8xf32>
    %r = ds.broadcast %lr dims [] {ds.work = #ds.work<update>} : tensor<f32> -> tensor<4x8xf32>
    %s = ds.mul %n, %r {ds.work = #ds.work<update>} : tensor<4x8xf32>
    %v = ds.sub %w, %s {ds.work = #ds.work<update>} : tensor<4x8xf32>
    return %v, %n : tensor<4x8xf32>, tensor<4x8xf32>
  }
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set, reduced true>]
}
