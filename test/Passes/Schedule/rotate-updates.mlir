// RUN: ds-opt %s --split-input-file --pass-pipeline='builtin.module(ds-rotate-updates{remarks})' --verify-diagnostics | FileCheck %s
// RUN: ds-opt %s --split-input-file --pass-pipeline='builtin.module(ds-rotate-updates,func.func(ds-split-updates{sub-group=256},ds-insert-events),ds-verify-scheduled)' | FileCheck %s --check-prefix=WHOLE
!device = !ds.buffer<tensor<1000xf32>, [1], device>
!host = !ds.buffer<tensor<1000xf32>, [1], host>
!scalar = !ds.buffer<tensor<f32>, [], host>
!count = !ds.buffer<tensor<i64>, [], device>

// Two parameters on the device, whose moments are on the host. The last segment updates @p first, and the first one reads @q before
// @p. What norms are is of no interest: all gradients are read for the factor.
// CHECK-LABEL: @two_segments
module @two_segments attributes {ds.phase = #ds.phase<scheduled>} {
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<1000xf32>
  ds.state @v role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<1000xf32>
  ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<1000xf32>
  ds.state @q role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<1000xf32>
  ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<1000xf32>
  ds.state @step role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<i64>
  // The second gradient and the factor are carried; the first gradient is a state that adds up.
  // CHECK: ds.state @late_0 role (buffer) {{.*}} home (host) {ds.work = #ds.work<update>} : tensor<f32>
  // CHECK: ds.state @late_1 role (buffer) {{.*}} home (host) {ds.work = #ds.work<update>} : tensor<1000xf32>
  // CHECK-NOT: ds.state {{.*}}ds.work
  ds.schedule stage 0 [#ds.run<@first, first 0, count 1, gradients set>, #ds.run<@last, first 1, count 1, gradients add, reduced true>]

  // The first segment is as it was.
  // CHECK: func.func @first(
  // CHECK-NOT: on host
  // CHECK: return
  func.func @first(%x: !device {ds.input = "x"}, %p: !device {ds.state = @p}, %q: !device {ds.state = @q}, %g: !host {ds.state = @g})
      attributes {ds.segment = #ds.segment<forward, backward>} {
    %a = ds.alloc activations : !device
    ds.launch @add ins(%x, %q) outs(%a) on compute {ds.work = #ds.work<forward>} : (!device, !device) -> !device
    %b = ds.alloc activations : !device
    ds.launch @add ins(%a, %p) outs(%b) on compute {ds.work = #ds.work<forward>} : (!device, !device) -> !device
    ds.transfer %b to %g on to_host {ds.work = #ds.work<backward>} : !device, !host
    return
  }

  // The last one counts the step and makes the factor, and updates nothing; both gradients stay where the updates will read them.
  // CHECK: func.func @last(
  // CHECK-SAME: %[[G:[a-z0-9]+]]: {{[^{]*}}{ds.state = @g}
  // CHECK-SAME: %[[C:[a-z0-9]+]]: {{[^{]*}}{ds.state = @late_0}
  // CHECK-SAME: %[[H:[a-z0-9]+]]: {{[^{]*}}{ds.state = @late_1}
  // CHECK-SAME: ds.segment = #ds.segment<forward, backward, update>
  // CHECK: ds.transfer %{{.*}} to %[[H]] on to_host
  // CHECK: ds.launch @factor ins(%[[G]], %[[H]]) outs(%[[C]]) on host
  // CHECK-NOT: ds.launch @update
  // CHECK: ds.launch @count
  // CHECK: return
  func.func @last(%x: !device {ds.input = "x"}, %p: !device {ds.state = @p}, %q: !device {ds.state = @q}, %m: !host {ds.state = @m}, %v: !host {ds.state = @v}, %g: !host {ds.state = @g}, %step: !count {ds.state = @step})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %a = ds.alloc activations : !device
    ds.launch @add ins(%x, %q) outs(%a) on compute {ds.work = #ds.work<forward>} : (!device, !device) -> !device
    %h = ds.alloc gradients : !host
    ds.transfer %a to %h on to_host {ds.work = #ds.work<backward>} : !device, !host
    %c = ds.alloc workspace : !scalar
    ds.launch @factor ins(%g, %h) outs(%c) on host {ds.work = #ds.work<update>} : (!host, !host) -> !scalar
    %s = ds.alloc workspace : !host
    ds.launch @update ins(%m, %g, %c) outs(%m, %s) extent 1000 on host {ds.work = #ds.work<update>} : (!host, !host, !scalar) -> (!host, !host)
    ds.transfer %s to %p on to_device {ds.work = #ds.work<update>} : !host, !device
    %t = ds.alloc workspace : !host
    ds.launch @update ins(%v, %h, %c) outs(%v, %t) extent 1000 on host {ds.work = #ds.work<update>} : (!host, !host, !scalar) -> (!host, !host)
    %d = ds.alloc gradients : !device
    ds.transfer %t to %d on to_device {ds.work = #ds.work<update>} : !host, !device
    ds.launch @add ins(%q, %d) outs(%q) on compute {ds.work = #ds.work<update>} : (!device, !device) -> !device
    ds.launch @count ins(%step) outs(%step) on compute {ds.work = #ds.work<update>} : (!count) -> !count
    return
  }

  // In the place of the first: the update of @q comes first, for @q is read first. What the device does for it stands right before
  // that, so that compute would wait no earlier.
  // CHECK: func.func @first_after_update(
  // CHECK-SAME: ds.segment = #ds.segment<forward, backward, update>
  // CHECK: ds.launch @update ins(%[[V:.*]], %{{.*}}, %{{.*}}) outs(%[[V]], %[[T:.*]]) extent 1000 on host
  // CHECK: ds.transfer %[[T]] to %[[D:.*]] on to_device
  // CHECK: ds.launch @update ins(%[[M:.*]], %{{.*}}, %{{.*}}) outs(%[[M]], %[[S:.*]]) extent 1000 on host
  // CHECK: ds.transfer %[[S]] to %[[P:.*]] on to_device
  // CHECK: ds.launch @add ins(%[[Q:.*]], %[[D]]) outs(%[[Q]]) on compute
  // CHECK-NEXT: ds.alloc activations
  // CHECK-NEXT: ds.launch @add ins(%{{.*}}, %[[Q]]) outs(%[[A:.*]]) on compute {ds.work = #ds.work<forward>}
  // CHECK: ds.launch @add ins(%[[A]], %[[P]])
  // CHECK: return

  // On their own, in the same order.
  // CHECK: func.func @late_updates(
  // CHECK-SAME: ds.segment = #ds.segment<update>
  // CHECK: ds.launch @update
  // CHECK: ds.transfer
  // CHECK-NEXT: ds.launch @add
  // CHECK: ds.launch @update
  // CHECK: ds.transfer
  // CHECK-NEXT: return

  // Compute waits for one update before it begins, and for the other before it reads @p; the pieces are those of an update that ends
  // a step.
  // WHOLE-LABEL: @two_segments
  // WHOLE: func.func @first_after_update(
  // WHOLE-COUNT-4: extent {{256|232}} on host
  // WHOLE: ds.wait {{.*}} on compute
  // WHOLE-NEXT: ds.launch @add {{.*}}#ds.work<update>
  // WHOLE: ds.launch @add {{.*}}#ds.work<forward>
  // WHOLE: ds.wait {{.*}} on compute
  // WHOLE: ds.launch @add {{.*}}#ds.work<forward>

  ds.kernel @add inputs 2 buffers [!device, !device, !device] {
  ^bb0(%x: tensor<1000xf32>, %y: tensor<1000xf32>):
    %z = ds.add %x, %y : tensor<1000xf32>
    ds.yield %z : tensor<1000xf32>
  }
  ds.kernel @factor inputs 2 buffers [!host, !host, !scalar] {
  ^bb0(%x: tensor<1000xf32>, %y: tensor<1000xf32>):
    %z = ds.add %x, %y : tensor<1000xf32>
    %s = ds.reduce sum %z dims [0] : tensor<1000xf32> -> tensor<f32>
    ds.yield %s : tensor<f32>
  }
  ds.kernel @update inputs 3 buffers [!ds.buffer<tensor<?xf32>, [1], host>, !ds.buffer<tensor<?xf32>, [1], host>, !scalar, !ds.buffer<tensor<?xf32>, [1], host>, !ds.buffer<tensor<?xf32>, [1], host>] {
  ^bb0(%x: tensor<?xf32>, %y: tensor<?xf32>, %c: tensor<f32>):
    %b = ds.broadcast %c dims [] : tensor<f32> -> tensor<?xf32>
    %n = ds.mul %y, %b : tensor<?xf32>
    %z = ds.add %x, %n : tensor<?xf32>
    ds.yield %z, %n : tensor<?xf32>, tensor<?xf32>
  }
  ds.kernel @count inputs 1 buffers [!count, !count] {
  ^bb0(%x: tensor<i64>):
    %z = ds.add %x, %x : tensor<i64>
    ds.yield %z : tensor<i64>
  }
}

// -----

// A step of one micro-batch: the copy does what the segment still does, after the updates of the step before.
!device = !ds.buffer<tensor<1000xf32>, [1], device>
!host = !ds.buffer<tensor<1000xf32>, [1], host>
// CHECK-LABEL: @one_segment
// CHECK: ds.state @late_0
module @one_segment attributes {ds.phase = #ds.phase<scheduled>} {
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<1000xf32>
  ds.state @p role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<1000xf32>
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set, reduced true>]
  // CHECK: func.func @last(
  // CHECK-NOT: ds.launch @update
  // CHECK: func.func @last_after_update(
  // CHECK: ds.launch @update ins(%{{.*}}, %[[LATE:.*]]) outs({{.*}}) extent 1000 on host
  // CHECK: ds.transfer %{{.*}} to %[[P:.*]] on to_device
  // CHECK: ds.launch @copy ins(%[[P]])
  // CHECK: ds.transfer %{{.*}} to %[[LATE]] on to_host
  // CHECK: func.func @late_updates(
  func.func @last(%p: !device {ds.state = @p}, %m: !host {ds.state = @m}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %a = ds.alloc activations : !device
    ds.launch @copy ins(%p) outs(%a) on compute {ds.work = #ds.work<forward>} : (!device) -> !device
    %h = ds.alloc gradients : !host
    ds.transfer %a to %h on to_host {ds.work = #ds.work<backward>} : !device, !host
    %s = ds.alloc workspace : !host
    ds.launch @update ins(%m, %h) outs(%m, %s) extent 1000 on host {ds.work = #ds.work<update>} : (!host, !host) -> (!host, !host)
    ds.transfer %s to %p on to_device {ds.work = #ds.work<update>} : !host, !device
    return
  }
  ds.kernel @copy inputs 1 buffers [!device, !device] {
  ^bb0(%x: tensor<1000xf32>):
    %z = ds.add %x, %x : tensor<1000xf32>
    ds.yield %z : tensor<1000xf32>
  }
  ds.kernel @update inputs 2 buffers [!ds.buffer<tensor<?xf32>, [1], host>, !ds.buffer<tensor<?xf32>, [1], host>, !ds.buffer<tensor<?xf32>, [1], host>, !ds.buffer<tensor<?xf32>, [1], host>] {
  ^bb0(%x: tensor<?xf32>, %y: tensor<?xf32>):
    %z = ds.add %x, %y : tensor<?xf32>
    ds.yield %z, %y : tensor<?xf32>, tensor<?xf32>
  }
}

// -----

// What the host reads after a step is there after it: nothing is late.
!host = !ds.buffer<tensor<1000xf32>, [1], host>
!scalar = !ds.buffer<tensor<f32>, [], host>
// CHECK-LABEL: @makes_a_scalar
// CHECK-NOT: ds.state {{.*}}ds.work
// CHECK-NOT: late_updates
// expected-remark@+1 {{no update is late: a scalar is made by what comes after an update on the host}}
module @makes_a_scalar attributes {ds.phase = #ds.phase<scheduled>} {
  ds.state @m role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<1000xf32>
  ds.state @g role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<1000xf32>
  ds.state @norm role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(host) : tensor<f32>
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set, reduced true>]
  func.func @last(%g: !host {ds.state = @g}, %m: !host {ds.state = @m}, %n: !scalar {ds.state = @norm}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    ds.launch @update ins(%m, %g) outs(%m) on host {ds.work = #ds.work<update>} : (!host, !host) -> !host
    ds.launch @sum ins(%m) outs(%n) on host {ds.work = #ds.work<update>} : (!host) -> !scalar
    return
  }
  ds.kernel @update inputs 2 buffers [!host, !host, !host] {
  ^bb0(%x: tensor<1000xf32>, %y: tensor<1000xf32>):
    %z = ds.add %x, %y : tensor<1000xf32>
    ds.yield %z : tensor<1000xf32>
  }
  ds.kernel @sum inputs 1 buffers [!host, !scalar] {
  ^bb0(%x: tensor<1000xf32>):
    %s = ds.reduce sum %x dims [0] : tensor<1000xf32> -> tensor<f32>
    ds.yield %s : tensor<f32>
  }
}

// -----

// CHECK-LABEL: @on_the_device
// CHECK-NOT: late_updates
// expected-remark@+1 {{no update is late: the host updates no state}}
module @on_the_device attributes {ds.phase = #ds.phase<scheduled>} {
  ds.state @step role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<i64>
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set, reduced true>]
  func.func @last(%step: !ds.buffer<tensor<i64>, [], device> {ds.state = @step}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
    return
  }
}
