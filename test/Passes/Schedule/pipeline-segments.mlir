// RUN: ds-opt %s --ds-pipeline-segments | FileCheck %s
// RUN: ds-opt %s --pass-pipeline='builtin.module(ds-pipeline-segments{schedule=gpipe})' | FileCheck %s --check-prefix=GPIPE
// RUN: ds-opt %s --pass-pipeline='builtin.module(ds-pipeline-segments,func.func(ds-insert-events),ds-verify-scheduled)' -o %t.mlir

// The first of two stages, with three micro-batches. Forward makes %c of a parameter alone, which backward makes once more, and moves on
// the counter @n, of which backward reads what it was: copies of it and of the input have two slots, as
// has what is sent and read again. What is received is read at once.
// CHECK: ds.state @slots_0 role (buffer) slots 2 {{.*}} : tensor<2x16xf32>
// CHECK: ds.state @slots_1 role (buffer) slots 2 {{.*}} : tensor<2x8xi64>
// CHECK: ds.state @slots_2 role (buffer) slots 2 {{.*}} : tensor<2x16xf32>
// CHECK: ds.state @slots_3 role (buffer) slots 1 {{.*}} : tensor<1x16xf32>
// A stage before the last is one forward ahead. A send waits for the forward that makes its value, a backward for what it receives and for the
// send of what it overwrites, a receive for the backward that reads its slot; a forward for the backward that its slots are of, on its own lane.
// CHECK: ds.schedule stage 0 [
// CHECK-SAME: #ds.run<@first.forward, first 0, count 1, gradients none>, #ds.run<@send_value, first 0, count 1, gradients none, after[1, 0]>,
// CHECK-SAME: #ds.run<@first.forward, first 1, count 1, gradients none>, #ds.run<@send_value, first 1, count 1, gradients none, after[2, 0]>,
// CHECK-SAME: #ds.run<@receive_gradient, first 0, count 1, gradients none>, #ds.run<@first.backward, first 0, count 1, gradients set, after[3, 0]>,
// CHECK-SAME: #ds.run<@middle.backward, first 1, count 1, gradients add,
// CHECK-SAME: #ds.run<@last.backward, first 2, count 1, gradients add, reduced true,
// CHECK-SAME: #ds.run<@last.update, first 2, count 1, gradients none>]
// All forwards do the same: one is left.
// CHECK: func.func @first.forward(%[[X:.*]]: {{.*}} {ds.input = "x"}, %[[X0:.*]]: {{.*}} {ds.state = @slots_0}, %[[N:.*]]: {{.*}} {ds.state = @n}, %[[N0:.*]]: {{.*}} {ds.state = @slots_1}, %[[W:.*]]: {{.*}} {ds.state = @w}, %[[Y:.*]]: !ds.buffer<tensor<8xf32>, [1], device> {ds.state = @slots_2}) attributes {ds.segment = #ds.segment<forward>}
// CHECK-DAG: ds.call copy(%[[N]], %[[N0]])
// CHECK-DAG: ds.call copy(%[[X]], %[[X0]])
// CHECK: %[[C:.*]] = ds.alloc activations
// CHECK-NEXT: ds.launch @double ins(%[[W]]) outs(%[[C]])
// CHECK-NEXT: ds.launch @add ins(%[[X]], %[[C]]) outs(%[[Y]])
// CHECK-NEXT: ds.launch @next ins(%[[N]]) outs(%[[N]])
// CHECK-NEXT: return
// CHECK: func.func @send_value(%[[Y:.*]]: {{.*}} {ds.state = @slots_2}) attributes {ds.segment = #ds.segment<transfer>}
// CHECK-NEXT: ds.communicate send ins(%[[Y]])
// CHECK-NEXT: return
// CHECK: func.func @receive_gradient(%[[D:.*]]: {{.*}} {ds.state = @slots_3}) attributes {ds.segment = #ds.segment<transfer>}
// CHECK: func.func @first.backward(%[[D:.*]]: {{[^{]*}} {ds.state = @slots_3}, %[[N0:.*]]: {{[^{]*}} {ds.state = @slots_1}, %[[W:.*]]: {{[^{]*}} {ds.state = @w}, %[[Y:.*]]: {{[^{]*}} {ds.state = @slots_2}, %[[X0:.*]]: {{[^{]*}} {ds.state = @slots_0}, %[[G:[a-z0-9]+]]:
// CHECK: ds.launch @count ins(%[[D]], %[[N0]])
// CHECK: %[[C:.*]] = ds.alloc activations
// CHECK-NEXT: ds.launch @double ins(%[[W]]) outs(%[[C]])
// CHECK-NEXT: ds.launch @all ins(%{{.*}}, %[[Y]], %[[X0]], %[[C]])
// CHECK-NOT: @middle.forward
// CHECK-NOT: @last.forward
// CHECK: func.func @last.update(%{{.*}} {ds.state = @g}, %{{.*}} {ds.state = @w}) attributes {ds.segment = #ds.segment<update>}
// GPIPE keeps all three.
// GPIPE: ds.state @slots_2 role (buffer) slots 3
// GPIPE: #ds.run<@first.forward, first 2, count 1, gradients none>{{.*}}#ds.run<@first.backward, first 0,
!h = !ds.buffer<tensor<8xf32>, [1], device>
!n = !ds.buffer<tensor<i64>, [], device>
module attributes {ds.phase = #ds.phase<scheduled>, ds.training = #ds.training<gradient_accumulation_steps = 3>} {
  ds.mesh @mesh axes [pp = 2] stages pp
  ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @g role(gradient) slot("grad") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
  ds.state @n role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<i64>
  ds.schedule stage 0 [#ds.run<@first, first 0, count 1, gradients set>, #ds.run<@middle, first 1, count 1, gradients add>, #ds.run<@last, first 2, count 1, gradients add, reduced true>]

  func.func @first(%x: !h {ds.input = "x"}, %w: !h {ds.state = @w}, %g: !h {ds.state = @g}, %n: !n {ds.state = @n})
      attributes {ds.segment = #ds.segment<forward, backward>} {
    %c = ds.alloc activations : !h
    ds.launch @double ins(%w) outs(%c) on compute {ds.work = #ds.work<forward>} : (!h) -> !h
    %y = ds.alloc activations : !h
    ds.launch @add ins(%x, %c) outs(%y) on compute {ds.work = #ds.work<forward>} : (!h, !h) -> !h
    ds.communicate send ins(%y) outs() along pp carries transfer number 0 on transfer {ds.work = #ds.work<forward>, peer = 1 : i64} : (!h) -> ()
    %d = ds.alloc communication : !h
    ds.communicate recv ins() outs(%d) along pp carries transfer number 1 on transfer {ds.work = #ds.work<backward>, peer = 1 : i64} : () -> !h
    %t = ds.alloc activations : !h
    ds.launch @count ins(%d, %n) outs(%t) on compute {ds.work = #ds.work<backward>} : (!h, !n) -> !h
    ds.launch @all ins(%t, %y, %x, %c) outs(%g) on compute {ds.work = #ds.work<backward>} : (!h, !h, !h, !h) -> !h
    ds.launch @next ins(%n) outs(%n) on compute {ds.work = #ds.work<forward>} : (!n) -> !n
    return
  }

  func.func @middle(%x: !h {ds.input = "x"}, %w: !h {ds.state = @w}, %g: !h {ds.state = @g}, %n: !n {ds.state = @n})
      attributes {ds.segment = #ds.segment<forward, backward>} {
    %c = ds.alloc activations : !h
    ds.launch @double ins(%w) outs(%c) on compute {ds.work = #ds.work<forward>} : (!h) -> !h
    %y = ds.alloc activations : !h
    ds.launch @add ins(%x, %c) outs(%y) on compute {ds.work = #ds.work<forward>} : (!h, !h) -> !h
    ds.communicate send ins(%y) outs() along pp carries transfer number 0 on transfer {ds.work = #ds.work<forward>, peer = 1 : i64} : (!h) -> ()
    %d = ds.alloc communication : !h
    ds.communicate recv ins() outs(%d) along pp carries transfer number 1 on transfer {ds.work = #ds.work<backward>, peer = 1 : i64} : () -> !h
    %t = ds.alloc activations : !h
    ds.launch @count ins(%d, %n) outs(%t) on compute {ds.work = #ds.work<backward>} : (!h, !n) -> !h
    ds.launch @all ins(%t, %y, %x, %c) outs(%g) on compute {ds.work = #ds.work<backward>} : (!h, !h, !h, !h) -> !h
    ds.launch @next ins(%n) outs(%n) on compute {ds.work = #ds.work<forward>} : (!n) -> !n
    return
  }

  func.func @last(%x: !h {ds.input = "x"}, %w: !h {ds.state = @w}, %g: !h {ds.state = @g}, %n: !n {ds.state = @n})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %c = ds.alloc activations : !h
    ds.launch @double ins(%w) outs(%c) on compute {ds.work = #ds.work<forward>} : (!h) -> !h
    %y = ds.alloc activations : !h
    ds.launch @add ins(%x, %c) outs(%y) on compute {ds.work = #ds.work<forward>} : (!h, !h) -> !h
    ds.communicate send ins(%y) outs() along pp carries transfer number 0 on transfer {ds.work = #ds.work<forward>, peer = 1 : i64} : (!h) -> ()
    %d = ds.alloc communication : !h
    ds.communicate recv ins() outs(%d) along pp carries transfer number 1 on transfer {ds.work = #ds.work<backward>, peer = 1 : i64} : () -> !h
    %t = ds.alloc activations : !h
    ds.launch @count ins(%d, %n) outs(%t) on compute {ds.work = #ds.work<backward>} : (!h, !n) -> !h
    ds.launch @all ins(%t, %y, %x, %c) outs(%g) on compute {ds.work = #ds.work<backward>} : (!h, !h, !h, !h) -> !h
    ds.launch @next ins(%n) outs(%n) on compute {ds.work = #ds.work<forward>} : (!n) -> !n
    ds.launch @double ins(%g) outs(%w) on compute {ds.work = #ds.work<update>} : (!h) -> !h
    return
  }

  ds.kernel @double inputs 1 buffers [!h, !h] {
  ^bb0(%a: tensor<8xf32>):
    %r = ds.add %a, %a : tensor<8xf32>
    ds.yield %r : tensor<8xf32>
  }
  ds.kernel @add inputs 2 buffers [!h, !h, !h] {
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>):
    %r = ds.add %a, %b : tensor<8xf32>
    ds.yield %r : tensor<8xf32>
  }
  ds.kernel @count inputs 2 buffers [!h, !n, !h] {
  ^bb0(%a: tensor<8xf32>, %i: tensor<i64>):
    %f = ds.convert %i : tensor<i64> -> tensor<f32>
    %b = ds.broadcast %f dims [] : tensor<f32> -> tensor<8xf32>
    %r = ds.mul %a, %b : tensor<8xf32>
    ds.yield %r : tensor<8xf32>
  }
  ds.kernel @all inputs 4 buffers [!h, !h, !h, !h, !h] {
  ^bb0(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>, %d: tensor<8xf32>):
    %p = ds.add %a, %b : tensor<8xf32>
    %q = ds.add %p, %c : tensor<8xf32>
    %r = ds.add %q, %d : tensor<8xf32>
    ds.yield %r : tensor<8xf32>
  }
  ds.kernel @next inputs 1 buffers [!n, !n] {
  ^bb0(%i: tensor<i64>):
    %one = ds.constant dense<1> : tensor<i64>
    %r = ds.add %i, %one : tensor<i64>
    ds.yield %r : tensor<i64>
  }
}
