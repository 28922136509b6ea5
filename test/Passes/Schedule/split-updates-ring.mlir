// RUN: ds-opt %s --pass-pipeline='builtin.module(func.func(ds-split-updates{sub-group=1024},ds-insert-events),ds-verify-scheduled)' | FileCheck %s
// RUN: ds-opt %s --pass-pipeline='builtin.module(func.func(ds-split-updates{staging=4096}))' | FileCheck %s --check-prefix=BYTES
// RUN: ds-opt %s --pass-pipeline='builtin.module(func.func(ds-split-updates))' | FileCheck %s --check-prefix=WHOLE
!device = !ds.buffer<tensor<2500xf32>, [1], device>
!host = !ds.buffer<tensor<2500xf32>, [1], host>
module attributes {ds.phase = #ds.phase<scheduled>} {
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<2500xf32>
  ds.state @n role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<2500xf32>
  ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2500xf32>
  ds.state @q role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2500xf32>

  // What goes on to the device from the host lies in a ring of up to 3 * 1024 elements, not in memory of its own: 1024, 1024 and 452
  // elements of the first update, and of the second 1024 from the start again, as 2560 + 1024 > 3072. That waits for the
  // copy that read there last, the first, and for no other.
  // CHECK-LABEL: func.func @passes
  // CHECK-SAME: %[[M:[a-z0-9]+]]: {{.*}}@m}, %[[N:[a-z0-9]+]]: {{.*}}@n}, %[[P:[a-z0-9]+]]: {{.*}}@p}, %[[Q:[a-z0-9]+]]:
  // CHECK: %[[RING:.*]] = ds.alloc workspace : !ds.buffer<tensor<2500xf32>, [1], host>
  // CHECK: %[[A:.*]] = ds.view %[[RING]] offset 0
  // CHECK: ds.launch @kernel_0 ins(%{{.*}}) outs(%{{.*}}, %[[A]]) extent 1024 on host
  // CHECK: ds.transfer %[[A]] to %{{.*}} on to_device
  // CHECK: ds.record [[FIRST:[0-9]+]] on to_device
  // CHECK: %[[B:.*]] = ds.view %[[RING]] offset 1024
  // CHECK: ds.launch {{.*}} outs(%{{.*}}, %[[B]]) extent 1024 on host
  // CHECK: %[[C:.*]] = ds.view %[[RING]] offset 2048
  // CHECK: ds.launch {{.*}} outs(%{{.*}}, %[[C]]) extent 452 on host
  // CHECK-NOT: ds.wait {{.*}} on host{{$}}
  // CHECK: %[[D:.*]] = ds.view %[[RING]] offset 0
  // CHECK: ds.wait [[FIRST]] on host
  // CHECK: ds.launch {{.*}} outs(%{{.*}}, %[[D]]) extent 1024 on host
  // CHECK-NOT: ds.alloc
  // CHECK: return

  // 4096 bytes are as many elements.
  // BYTES-LABEL: func.func @passes
  // BYTES: ds.alloc workspace : !ds.buffer<tensor<2500xf32>, [1], host>
  // BYTES-COUNT-2: extent 1024 on host
  // BYTES: extent 452 on host

  // A ring of 3 * 2500 elements has room for both: nothing would take their place again, and they keep their own.
  // WHOLE-LABEL: func.func @passes
  // WHOLE-COUNT-2: ds.alloc activations : !ds.buffer<tensor<2500xf32>, [1], host>
  // WHOLE-NOT: ds.view
  func.func @passes(%m: !host {ds.state = @m}, %n: !host {ds.state = @n}, %p: !device {ds.state = @p}, %q: !device {ds.state = @q})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %a = ds.alloc activations : !host
    ds.launch @kernel_0 ins(%m) outs(%m, %a) extent 2500 on host : (!host) -> (!host, !host)
    ds.transfer %a to %p on to_device : !host, !device
    %b = ds.alloc activations : !host
    ds.launch @kernel_0 ins(%n) outs(%n, %b) extent 2500 on host : (!host) -> (!host, !host)
    ds.transfer %b to %q on to_device : !host, !device
    return
  }

  ds.kernel @kernel_0 inputs 1 buffers [!ds.buffer<tensor<?xf32>, [1], host>, !ds.buffer<tensor<?xf32>, [1], host>, !ds.buffer<tensor<?xf32>, [1], host>] {
  ^bb0(%x: tensor<?xf32>):
    %s = ds.add %x, %x : tensor<?xf32>
    %t = ds.mul %s, %x : tensor<?xf32>
    ds.yield %s, %t : tensor<?xf32>, tensor<?xf32>
  }
}
