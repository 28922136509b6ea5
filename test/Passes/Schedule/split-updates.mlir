// RUN: ds-opt %s --pass-pipeline='builtin.module(func.func(ds-split-updates{sub-group=1024}))' | FileCheck %s
// RUN: ds-opt %s --pass-pipeline='builtin.module(func.func(ds-split-updates{sub-group=1024 sets=1}))' | FileCheck %s --check-prefix=ONE
// RUN: ds-opt %s --pass-pipeline='builtin.module(func.func(ds-split-updates{staging=4096}))' | FileCheck %s
// RUN: ds-opt %s --pass-pipeline='builtin.module(func.func(ds-split-updates{sub-group=1024},ds-prefetch-loads))' | FileCheck %s --check-prefix=AHEAD
// RUN: ds-opt %s --pass-pipeline='builtin.module(func.func(ds-split-updates{sub-group=1024},ds-insert-events),ds-verify-scheduled)' > /dev/null
!device = !ds.buffer<tensor<2500xf32>, [1], device>
!host = !ds.buffer<tensor<2500xf32>, [1], host>
!nvme = !ds.buffer<tensor<2500xf32>, [1], nvme>
!scalar = !ds.buffer<tensor<f32>, [], host>
module attributes {ds.phase = #ds.phase<scheduled>} {
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(nvme) : tensor<2500xf32>
  ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<2500xf32>
  ds.state @step role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2500xf32>
  ds.state @rate role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<f32>

  // Each launch over 2500 elements becomes three, of 1024, 1024 and 452; the moment goes through two sets of memory of
  // 1024 elements, its window of storage begins at units of 4096 bytes. The gradient is on the host and stays there: its
  // window is read where it is. The scalar is read whole.
  // CHECK-LABEL: func.func @update
  // CHECK-SAME: %[[M:[a-z0-9]+]]: {{.*}}@m}, %[[G:[a-z0-9]+]]: {{.*}}@g}, %[[D:[a-z0-9]+]]: {{.*}}@step}, %[[R:[a-z0-9]+]]:
  // CHECK: %[[SLOT0:.*]] = ds.alloc workspace alignment 4096 : !ds.buffer<tensor<1024xf32>, [1], host>
  // CHECK: %[[A0:.*]] = ds.view %[[SLOT0]] offset 0
  // CHECK: %[[M0:.*]] = ds.view %[[M]] offset 0
  // CHECK: ds.transfer %[[M0]] to %[[A0]] on storage
  // CHECK: %[[G0:.*]] = ds.view %[[G]] offset 0
  // CHECK: ds.launch @kernel_0 ins(%[[A0]], %[[G0]], %[[R]]) outs(%[[A0]]) extent 1024 on host
  // CHECK: ds.transfer %[[A0]] to %[[M0]] on storage
  // CHECK: ds.transfer %[[A0]] to %{{.*}} on to_device
  // CHECK: %[[SLOT1:.*]] = ds.alloc workspace
  // CHECK: %[[A1:.*]] = ds.view %[[SLOT1]] offset 0
  // CHECK: %[[M1:.*]] = ds.view %[[M]] offset 1024
  // CHECK: ds.transfer %[[M1]] to %[[A1]] on storage
  // CHECK: ds.launch {{.*}} extent 1024 on host
  // CHECK: ds.transfer %[[A1]] to %[[M1]] on storage
  // CHECK: %[[A2:.*]] = ds.view %[[SLOT0]] offset 0
  // CHECK: %[[M2:.*]] = ds.view %[[M]] offset 2048
  // CHECK: ds.transfer %[[M2]] to %[[A2]] on storage : !ds.buffer<tensor<452xf32>, [1], nvme>
  // CHECK: ds.launch {{.*}} extent 452 on host
  // CHECK: ds.transfer %[[A2]] to %[[M2]] on storage
  // ONE-COUNT-1: ds.alloc
  // ONE-NOT: ds.alloc
  // ONE: func.func @tied

  // The second read runs before the first window is written, as its memory is free; the third one waits for the first.
  // AHEAD-LABEL: func.func @update
  // AHEAD: ds.transfer {{.*}} on storage : !ds.buffer<tensor<1024xf32>, [1], nvme>
  // AHEAD: ds.transfer {{.*}} on storage : !ds.buffer<tensor<1024xf32>, [1], nvme>
  // AHEAD: ds.launch
  // AHEAD: ds.transfer {{.*}} on to_device
  // AHEAD: ds.transfer {{.*}} on storage : !ds.buffer<tensor<1024xf32>, [1], host>
  // AHEAD: ds.transfer {{.*}} on storage : !ds.buffer<tensor<452xf32>, [1], nvme>
  // AHEAD: ds.launch
  func.func @update(%m: !nvme {ds.state = @m}, %g: !host {ds.state = @g}, %d: !device {ds.state = @step}, %r: !scalar {ds.state = @rate})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %a = ds.alloc workspace alignment 4096 : !host
    ds.transfer %m to %a on storage : !nvme, !host
    ds.launch @kernel_0 ins(%a, %g, %r) outs(%a) extent 2500 on host : (!host, !host, !scalar) -> !host
    ds.transfer %a to %m on storage : !host, !nvme
    ds.transfer %a to %d on to_device : !host, !device
    return
  }

  // What is written back is not moved past a read of what was there before: all stays as it is.
  // CHECK-LABEL: func.func @tied
  // CHECK: ds.launch @kernel_0 {{.*}} extent 2500 on host
  // CHECK: ds.transfer %{{.*}} on storage : !ds.buffer<tensor<2500xf32>, [1], nvme>
  // CHECK: ds.transfer %{{.*}} on storage : !ds.buffer<tensor<2500xf32>, [1], host>
  func.func @tied(%m: !nvme {ds.state = @m}, %g: !host {ds.state = @g}, %r: !scalar {ds.state = @rate})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %a = ds.alloc workspace alignment 4096 : !host
    ds.transfer %m to %a on storage : !nvme, !host
    ds.launch @kernel_0 ins(%a, %g, %r) outs(%a) extent 2500 on host : (!host, !host, !scalar) -> !host
    %c = ds.alloc workspace alignment 4096 : !host
    ds.transfer %m to %c on storage : !nvme, !host
    ds.call copy(%c, %g) writes [1] params [] on host : !host, !host
    ds.transfer %a to %m on storage : !host, !nvme
    return
  }

  ds.kernel @kernel_0 inputs 3 buffers [!ds.buffer<tensor<?xf32>, [1], host>, !ds.buffer<tensor<?xf32>, [1], host>, !ds.buffer<tensor<f32>, [], host>, !ds.buffer<tensor<?xf32>, [1], host>] {
  ^bb0(%x: tensor<?xf32>, %y: tensor<?xf32>, %z: tensor<f32>):
    %b = ds.broadcast %z dims [] : tensor<f32> -> tensor<?xf32>
    %p = ds.mul %y, %b : tensor<?xf32>
    %n = ds.add %x, %p : tensor<?xf32>
    ds.yield %n : tensor<?xf32>
  }
}
