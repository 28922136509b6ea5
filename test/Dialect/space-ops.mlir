// RUN: ds-opt %s --verify-roundtrip | FileCheck %s

// Other spaces than the device's, as the descriptions show them.

// CHECK-LABEL: @values
module {
  func.func @values(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
    // CHECK: %[[S:.*]] = ds.store %{{.*}} : tensor<4x8xf32> -> !ds.stored<tensor<4x8xf32>, host>
    %s = ds.store %x : tensor<4x8xf32> -> !ds.stored<tensor<4x8xf32>, host>
    // CHECK: ds.load %[[S]] : !ds.stored<tensor<4x8xf32>, host> -> tensor<4x8xf32>
    %y = ds.load %s : !ds.stored<tensor<4x8xf32>, host> -> tensor<4x8xf32>
    return %y : tensor<4x8xf32>
  }
  // CHECK-LABEL: @moved
  func.func @moved(%s: !ds.stored<tensor<4x8xf32>, nvme>) -> !ds.stored<tensor<4x8xf32>, host> {
    // CHECK: ds.move %{{.*}} : !ds.stored<tensor<4x8xf32>, nvme> -> !ds.stored<tensor<4x8xf32>, host>
    %h = ds.move %s : !ds.stored<tensor<4x8xf32>, nvme> -> !ds.stored<tensor<4x8xf32>, host>
    return %h : !ds.stored<tensor<4x8xf32>, host>
  }
  // CHECK-LABEL: @host
  func.func @host(%m: !ds.stored<tensor<4xf32>, host>, %g: !ds.stored<tensor<4xf32>, host>) -> !ds.stored<tensor<4xf32>, host> {
    // CHECK: ds.host(%{{.*}}, %{{.*}}) : (!ds.stored<tensor<4xf32>, host>, !ds.stored<tensor<4xf32>, host>) -> !ds.stored<tensor<4xf32>, host> {
    // CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>):
    // CHECK-NEXT: %[[N:.*]] = ds.add %[[X]], %[[Y]]
    // CHECK-NEXT: ds.yield %[[N]]
    %new = ds.host(%m, %g) : (!ds.stored<tensor<4xf32>, host>, !ds.stored<tensor<4xf32>, host>) -> !ds.stored<tensor<4xf32>, host> {
    ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
      %s = ds.add %x, %y : tensor<4xf32>
      ds.yield %s : tensor<4xf32>
    }
    return %new : !ds.stored<tensor<4xf32>, host>
  }
}
module {
  // CHECK: ds.arena device bytes 4096 lower_bound 4032
  ds.arena device bytes 4096 lower_bound 4032
  // CHECK-LABEL: @buffers
  func.func @buffers(%a: !ds.buffer<tensor<4x8xf32>, [8, 1], device>, %h: !ds.buffer<tensor<4x8xf32>, [8, 1], host>) {
    // CHECK: ds.transfer %{{.*}} to %{{.*}} on to_host : !ds.buffer<tensor<4x8xf32>, [8, 1], device>, !ds.buffer<tensor<4x8xf32>, [8, 1], host>
    ds.transfer %a to %h on to_host : !ds.buffer<tensor<4x8xf32>, [8, 1], device>, !ds.buffer<tensor<4x8xf32>, [8, 1], host>
    // CHECK: ds.transfer %{{.*}} to %{{.*}} on to_device : !ds.buffer<tensor<4x8xf32>, [8, 1], host>, !ds.buffer<tensor<4x8xf32>, [8, 1], device>
    ds.transfer %h to %a on to_device : !ds.buffer<tensor<4x8xf32>, [8, 1], host>, !ds.buffer<tensor<4x8xf32>, [8, 1], device>
    return
  }
}
