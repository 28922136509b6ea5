// RUN: ds-opt %s --ds-fuse-regions --ds-order-issue --ds-bufferize | FileCheck %s
// RUN: ds-opt %s --ds-fuse-regions --ds-order-issue --ds-bufferize --ds-insert-events --ds-verify-scheduled --ds-plan-memory --ds-verify-planned -o %t.mlir

// E7. Squares of several tensors on the host are summed up behind what last writes each, over blocks: 200 * 200 elements are
// two whole ones and a begun one. What waits for all of them is the sum of 3 and 1 numbers. The moment, which nothing here
// writes, is summed up where the norm stood.
!large = !ds.stored<tensor<200x200xf32>, host>
!small = !ds.stored<tensor<8xf32>, host>
!norm = !ds.stored<tensor<f64>, host>
module attributes {ds.phase = #ds.phase<resident>} {
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<8xf32>
  ds.state @n role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f64>
  // CHECK-LABEL: func.func @last(
  // CHECK-SAME: %[[G:[a-z0-9]+]]: {{[^,]*}}, [1], device>{{[^,]*}}, %[[H:[a-z0-9]+]]
  // CHECK: ds.transfer %{{.*}} to %[[SG:.*]] on to_host
  // CHECK: ds.call sum_of_squares(%[[SG]], %[[BG:.*]]) writes [1] params [] on host {ds.work = #ds.work<backward>} : !ds.buffer<tensor<200x200xf32>, [200, 1], host>, !ds.buffer<tensor<3xf32>, [1], host>
  // CHECK: ds.transfer %{{.*}} to %[[SH:.*]] on to_host
  // CHECK: ds.call sum_of_squares(%[[SH]], %[[BH:.*]]) writes [1] params [] on host
  // CHECK: ds.call sum_of_squares(%{{.*}}, %[[BM:.*]]) writes [1] params [] on host {ds.work = #ds.work<update>}
  // CHECK: ds.call sum_of_squares(%[[BG]], %[[BH]], %[[BM]], %[[N:.*]]) writes [3] params [1] on host
  // CHECK-NOT: sum_of_squares
  // CHECK: ds.transfer %[[N]] to
  func.func @last(%g: tensor<200x200xf32> {ds.input = "g"}, %h: tensor<8xf32> {ds.input = "h"}, %m: !small {ds.state = @m})
      -> (tensor<f64> {ds.state = @n}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %sg = ds.store %g {ds.work = #ds.work<backward>} : tensor<200x200xf32> -> !large
    %sh = ds.store %h {ds.work = #ds.work<backward>} : tensor<8xf32> -> !small
    %n = ds.host(%sg, %sh, %m) {ds.work = #ds.work<update>} : (!large, !small, !small) -> !norm {
    ^bb0(%x: tensor<200x200xf32>, %y: tensor<8xf32>, %z: tensor<8xf32>):
      %s = ds.sum_of_squares %x, %y, %z : tensor<200x200xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<f64>
      ds.yield %s : tensor<f64>
    }
    %l = ds.load %n {ds.work = #ds.work<update>} : !norm -> tensor<f64>
    return %l : tensor<f64>
  }
  // One tensor's, and those that the device sums up, stay one sum.
  // CHECK-LABEL: func.func @on_device(
  // CHECK: ds.call sum_of_squares(%{{.*}}, %{{.*}}, %{{.*}}) writes [2] params [] on compute
  // CHECK-NOT: sum_of_squares
  func.func @on_device(%g: tensor<8xf32> {ds.input = "g"}, %h: tensor<8xf32> {ds.input = "h"}) -> (tensor<f64> {ds.state = @n})
      attributes {ds.segment = #ds.segment<evaluation>} {
    %s = ds.sum_of_squares %g, %h : tensor<8xf32>, tensor<8xf32> -> tensor<f64>
    return %s : tensor<f64>
  }
}
