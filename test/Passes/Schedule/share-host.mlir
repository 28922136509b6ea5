// RUN: ds-opt %s --pass-pipeline='builtin.module(func.func(ds-insert-events,ds-share-host,ds-insert-events),ds-verify-scheduled,ds-plan-memory,ds-verify-planned,ds-verify-collectives)' | FileCheck %s
!large = !ds.buffer<tensor<8000000xf32>, [1], device>
!device = !ds.buffer<tensor<1000xf32>, [1], device>
!host = !ds.buffer<tensor<1000xf32>, [1], host>
!nvme = !ds.buffer<tensor<1000xf32>, [1], nvme>
module attributes {ds.phase = #ds.phase<scheduled>} {
  ds.state @m0 role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<1000xf32>
  ds.state @m1 role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<1000xf32>
  ds.state @m2 role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<1000xf32>
  ds.state @n role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(nvme) : tensor<1000xf32>
  ds.state @l role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8000000xf32>
  ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<1000xf32>

  // Each copy is there from its transfer until it has been added up. The second begins when compute has worked for long, so that
  // the first is done with: it takes its place and waits for the addition that read it. The third follows at once, and finds
  // that of the second under way: it lies behind it, at 1000 elements rounded up to whole steps of 64.
  // CHECK-LABEL: func.func @copies
  // CHECK: %[[POOL:.*]] = ds.alloc workspace offset {{[0-9]+}} : !ds.buffer<tensor<2048xf32>, [1], host>
  // CHECK: %[[A:.*]] = ds.view %[[POOL]] offset 0
  // CHECK: ds.transfer %{{.*}} to %[[A]] on to_host
  // CHECK: ds.launch @kernel_0 ins(%{{.*}}, %[[A]])
  // CHECK: ds.record [[ADDED:[0-9]+]] on host
  // CHECK: %[[B:.*]] = ds.view %[[POOL]] offset 0
  // CHECK: ds.wait [[ADDED]] on to_host
  // CHECK: ds.transfer %{{.*}} to %[[B]] on to_host
  // CHECK: ds.launch @kernel_0 ins(%{{.*}}, %[[B]])
  // CHECK: %[[C:.*]] = ds.view %[[POOL]] offset 1024
  // CHECK: ds.transfer %{{.*}} to %[[C]] on to_host
  // CHECK: ds.launch @kernel_0 ins(%{{.*}}, %[[C]])
  // CHECK-NOT: ds.alloc
  // CHECK: return
  func.func @copies(%m0: !host {ds.state = @m0}, %m1: !host {ds.state = @m1}, %m2: !host {ds.state = @m2}, %g: !device {ds.state = @g}, %l: !large {ds.state = @l})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %a = ds.alloc activations : !host
    ds.transfer %g to %a on to_host : !device, !host
    ds.launch @kernel_0 ins(%m0, %a) outs(%m0) extent 1000 on host : (!host, !host) -> !host
    ds.launch @kernel_1 ins(%l) outs(%l) extent 8000000 on compute : (!large) -> !large
    %b = ds.alloc activations : !host
    ds.transfer %g to %b on to_host : !device, !host
    ds.launch @kernel_0 ins(%m1, %b) outs(%m1) extent 1000 on host : (!host, !host) -> !host
    %c = ds.alloc activations : !host
    ds.transfer %g to %c on to_host : !device, !host
    ds.launch @kernel_0 ins(%m2, %c) outs(%m2) extent 1000 on host : (!host, !host) -> !host
    return
  }

  // The second is read behind the third's first use: nothing shares memory, and all stays as it is.
  // CHECK-LABEL: func.func @crossing
  // CHECK-COUNT-2: ds.alloc activations
  // CHECK-NOT: ds.view
  // CHECK: return
  func.func @crossing(%m0: !host {ds.state = @m0}, %m1: !host {ds.state = @m1}, %g: !device {ds.state = @g})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %a = ds.alloc activations : !host
    ds.transfer %g to %a on to_host : !device, !host
    %b = ds.alloc activations : !host
    ds.transfer %g to %b on to_host : !device, !host
    ds.launch @kernel_0 ins(%m0, %b) outs(%m0) extent 1000 on host : (!host, !host) -> !host
    ds.launch @kernel_0 ins(%m1, %a) outs(%m1) extent 1000 on host : (!host, !host) -> !host
    return
  }

  // What only copies touch keeps its own, and what storage moves shares nothing with what it does not.
  // CHECK-LABEL: func.func @others
  // CHECK-COUNT-6: ds.alloc activations
  // CHECK-NOT: ds.alloc workspace
  // CHECK: return
  func.func @others(%m0: !host {ds.state = @m0}, %n: !nvme {ds.state = @n}, %g: !device {ds.state = @g})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %a0 = ds.alloc activations alignment 4096 : !host
    ds.transfer %n to %a0 on storage : !nvme, !host
    ds.launch @kernel_0 ins(%m0, %a0) outs(%m0) extent 1000 on host : (!host, !host) -> !host
    %a1 = ds.alloc activations alignment 4096 : !host
    ds.transfer %n to %a1 on storage : !nvme, !host
    ds.launch @kernel_0 ins(%m0, %a1) outs(%m0) extent 1000 on host : (!host, !host) -> !host
    %a2 = ds.alloc activations alignment 4096 : !host
    ds.transfer %n to %a2 on storage : !nvme, !host
    ds.launch @kernel_0 ins(%m0, %a2) outs(%m0) extent 1000 on host : (!host, !host) -> !host
    %b0 = ds.alloc activations : !host
    ds.transfer %g to %b0 on to_host : !device, !host
    ds.transfer %b0 to %g on to_device : !host, !device
    %b1 = ds.alloc activations : !host
    ds.transfer %g to %b1 on to_host : !device, !host
    ds.transfer %b1 to %g on to_device : !host, !device
    %b2 = ds.alloc activations : !host
    ds.transfer %g to %b2 on to_host : !device, !host
    ds.transfer %b2 to %g on to_device : !host, !device
    return
  }

  ds.kernel @kernel_0 inputs 2 buffers [!ds.buffer<tensor<?xf32>, [1], host>, !ds.buffer<tensor<?xf32>, [1], host>, !ds.buffer<tensor<?xf32>, [1], host>] {
  ^bb0(%x: tensor<?xf32>, %y: tensor<?xf32>):
    %s = ds.add %x, %y : tensor<?xf32>
    ds.yield %s : tensor<?xf32>
  }

  ds.kernel @kernel_1 inputs 1 buffers [!ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>] {
  ^bb0(%x: tensor<?xf32>):
    %s = ds.add %x, %x : tensor<?xf32>
    ds.yield %s : tensor<?xf32>
  }
}
