// RUN: ds-opt %s --split-input-file --ds-offload-updates --ds-place-states | FileCheck %s
// RUN: ds-opt %s --split-input-file --ds-offload-updates --ds-place-states --ds-fuse-regions --ds-verify-fused -o %t.mlir

// A parameter that decays before something of the host is subtracted from it decays on the device: it is not sent to the host and
// back for that. What a moment takes of it as well is made on the host.

module attributes {ds.phase = #ds.phase<fused>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @w.exp_avg role(moment) slot("exp_avg") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<8xf32>
  // CHECK-LABEL: func.func @decays_on_the_device(
  // CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<8xf32> {ds.state = @w}
  // CHECK-NOT: ds.store %[[W]]
  // CHECK: %[[NEW:.*]]:2 = ds.host(
  // CHECK: %[[STEP:.*]] = ds.load %[[NEW]]
  // CHECK: %[[KEPT:.*]] = ds.mul %[[W]]
  // CHECK: %[[DECAYED:.*]] = ds.sub %[[KEPT]]
  // CHECK: ds.sub %[[DECAYED]], %[[STEP]]
  func.func @decays_on_the_device(%w: tensor<8xf32> {ds.state = @w}, %m: tensor<8xf32> {ds.state = @w.exp_avg}, %g: tensor<8xf32> {ds.input = "g"})
      -> (tensor<8xf32> {ds.state = @w}, tensor<8xf32> {ds.state = @w.exp_avg}) attributes {ds.segment = #ds.segment<update>} {
    %n = ds.add %m, %g {ds.work = #ds.work<update>} : tensor<8xf32>
    %s = ds.sqrt %n {ds.work = #ds.work<update>} : tensor<8xf32>
    %c = ds.constant dense<9.000000e-01> : tensor<8xf32>
    %k = ds.mul %w, %c {ds.work = #ds.work<update>} : tensor<8xf32>
    %d = ds.sub %k, %c {ds.work = #ds.work<update>} : tensor<8xf32>
    %v = ds.sub %d, %s {ds.work = #ds.work<update>} : tensor<8xf32>
    return %v, %n : tensor<8xf32>, tensor<8xf32>
  }
  ds.schedule stage 0 [#ds.run<@decays_on_the_device, first 0, count 1, gradients none>]
}

// -----

module attributes {ds.phase = #ds.phase<fused>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @w.exp_avg role(moment) slot("exp_avg") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<8xf32>
  // CHECK-LABEL: func.func @decays_where_the_moment_takes_it(
  // CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<8xf32> {ds.state = @w}
  // CHECK: %[[SENT:.*]] = ds.store %[[W]]
  // CHECK: ds.host({{.*}}%[[SENT]]
  // CHECK: ds.mul
  func.func @decays_where_the_moment_takes_it(%w: tensor<8xf32> {ds.state = @w}, %m: tensor<8xf32> {ds.state = @w.exp_avg})
      -> (tensor<8xf32> {ds.state = @w}, tensor<8xf32> {ds.state = @w.exp_avg}) attributes {ds.segment = #ds.segment<update>} {
    %c = ds.constant dense<9.000000e-01> : tensor<8xf32>
    %k = ds.mul %w, %c {ds.work = #ds.work<update>} : tensor<8xf32>
    %n = ds.add %m, %k {ds.work = #ds.work<update>} : tensor<8xf32>
    %v = ds.sub %k, %n {ds.work = #ds.work<update>} : tensor<8xf32>
    return %v, %n : tensor<8xf32>, tensor<8xf32>
  }
  ds.schedule stage 0 [#ds.run<@decays_where_the_moment_takes_it, first 0, count 1, gradients none>]
}
