// RUN: ds-opt %s --ds-bufferize=staging=4096 --ds-insert-events --ds-verify-scheduled --ds-plan-memory --ds-verify-planned --ds-verify-collectives | FileCheck %s

// A state in storage is loaded and stored in two legs, in pieces through two pieces of host memory in turn: 2500 floats are 1024,
// 1024 and 452. The second leg of a piece waits for the first one, and a piece of memory for who read it last.
!stored = !ds.stored<tensor<50x50xf32>, nvme>
module attributes {ds.phase = #ds.phase<resident>} {
  // 10000 bytes are three units of 4096.
  // CHECK-DAG: ds.arena host bytes 8192 lower_bound 8192
  // CHECK-DAG: ds.arena nvme bytes 12288 lower_bound 12288
  // CHECK: ds.state @m {{.*}} home (nvme) {offset = 0 : i64}
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(nvme) : tensor<50x50xf32>
  // CHECK: func.func @last(%[[M:[a-z0-9]+]]: !ds.buffer<tensor<50x50xf32>, [50, 1], nvme>
  func.func @last(%m: !stored {ds.state = @m}) -> (!stored {ds.state = @m})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    // CHECK-DAG: ds.alloc workspace offset 0 alignment 4096 : !ds.buffer<tensor<1024xf32>, [1], host>
    // CHECK-DAG: ds.alloc workspace offset 4096 alignment 4096 : !ds.buffer<tensor<1024xf32>, [1], host>
    // CHECK: ds.transfer %{{.*}} to %{{.*}} on storage : !ds.buffer<tensor<1024xf32>, [1], nvme>, !ds.buffer<tensor<1024xf32>, [1], host>
    // CHECK: ds.record [[READ0:[0-9]+]] on storage
    // CHECK: ds.wait [[READ0]] on to_device
    // CHECK: ds.transfer %{{.*}} to %{{.*}} on to_device : !ds.buffer<tensor<1024xf32>, [1], host>, !ds.buffer<tensor<1024xf32>, [1], device>
    // CHECK: ds.record [[COPIED0:[0-9]+]] on to_device
    // CHECK: ds.view %[[M]] offset 1024
    // CHECK: ds.transfer %{{.*}} on storage
    // CHECK: ds.transfer %{{.*}} on to_device
    // CHECK: ds.view %[[M]] offset 2048
    // CHECK: ds.wait [[COPIED0]] on storage
    // CHECK: ds.transfer %{{.*}} on storage : !ds.buffer<tensor<452xf32>, [1], nvme>, !ds.buffer<tensor<452xf32>, [1], host>
    %l = ds.load %m : !stored -> tensor<50x50xf32>
    // CHECK: ds.wait {{.*}} on compute
    // CHECK: ds.launch
    %n = ds.fused (%l) : (tensor<50x50xf32>) -> tensor<50x50xf32> {
    ^bb0(%a: tensor<50x50xf32>):
      %c = ds.add %a, %a : tensor<50x50xf32>
      ds.yield %c : tensor<50x50xf32>
    }
    // CHECK: ds.wait {{.*}} on to_host
    // CHECK: ds.transfer %{{.*}} on to_host : !ds.buffer<tensor<1024xf32>, [1], device>, !ds.buffer<tensor<1024xf32>, [1], host>
    // CHECK: ds.wait {{.*}} on storage
    // CHECK: ds.transfer %{{.*}} on storage : !ds.buffer<tensor<1024xf32>, [1], host>, !ds.buffer<tensor<1024xf32>, [1], nvme>
    %t = ds.store %n : tensor<50x50xf32> -> !stored
    return %t : !stored
  }
}
