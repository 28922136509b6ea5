// RUN: ds-opt %s --ds-place-states | FileCheck %s
// RUN: ds-opt %s --ds-place-states --ds-fuse-regions --ds-verify-fused -o %t.mlir

// @m lives on the host: it is loaded before its first reader, and its new value is stored as soon as
// it is made. @s leaves as it came, and is
// not brought to the device. @w stays where it is.
module attributes {ds.phase = #ds.phase<fused>} {
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<8xf32>
  ds.state @s role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<8xf32>
  // CHECK: func.func @last(%[[X:.*]]: tensor<8xf32> {ds.input = "x"}, %[[W:.*]]: tensor<8xf32> {ds.state = @w},
  // CHECK-SAME: %[[M:.*]]: !ds.stored<tensor<8xf32>, host> {ds.state = @m}, %[[S:.*]]: !ds.stored<tensor<8xf32>, host> {ds.state = @s})
  // CHECK-SAME: -> (tensor<8xf32> {ds.state = @w}, !ds.stored<tensor<8xf32>, host> {ds.state = @m}, !ds.stored<tensor<8xf32>, host> {ds.state = @s})
  // CHECK-NEXT: %[[P:.*]] = ds.mul %[[X]], %[[W]]
  // CHECK-NEXT: %[[L:.*]] = ds.load %[[M]]
  // CHECK-NEXT: %[[N:.*]] = ds.add %[[L]], %[[P]]
  // CHECK-NEXT: %[[T:.*]] = ds.store %[[N]]
  // CHECK-NEXT: %[[V:.*]] = ds.sub %[[N]], %[[L]]
  // CHECK-NEXT: return %[[V]], %[[T]], %[[S]]
  func.func @last(%x: tensor<8xf32> {ds.input = "x"}, %w: tensor<8xf32> {ds.state = @w},
                  %m: tensor<8xf32> {ds.state = @m}, %s: tensor<8xf32> {ds.state = @s})
      -> (tensor<8xf32> {ds.state = @w}, tensor<8xf32> {ds.state = @m}, tensor<8xf32> {ds.state = @s})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %p = ds.mul %x, %w {ds.work = #ds.work<backward>} : tensor<8xf32>
    %n = ds.add %m, %p {ds.work = #ds.work<backward>} : tensor<8xf32>
    %v = ds.sub %n, %m {ds.work = #ds.work<backward>} : tensor<8xf32>
    return %v, %n, %s : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
  }
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set>]
}
