// What a stage has with others (messages, collectives along the axes of stages) keeps its order through all passes that move ops, though no
// value holds it: whoever receives before it sends waits for a stage that waits for it.
// RUN: split-file %s %t
// RUN: ds-opt %t/fuse.mlir --ds-fuse-regions | FileCheck %t/fuse.mlir
// RUN: ds-opt %t/order.mlir --ds-order-issue | FileCheck %t/order.mlir
// RUN: ds-opt %t/overlap.mlir --ds-overlap-reductions | FileCheck %t/overlap.mlir
// RUN: ds-opt %t/exchange.mlir --ds-insert-events | FileCheck %t/exchange.mlir

//--- fuse.mlir
// One kernel for both would need what is received before it gives what is sent.
// CHECK-LABEL: func.func @parts_at_meetings
// CHECK: ds.tanh
// CHECK: ds.send
// CHECK: ds.recv
// CHECK: ds.mul
ds.mesh @mesh axes [pp = 2, tp = 1] stages pp
func.func @parts_at_meetings(%x: tensor<8xf32> {ds.input = "x"}) -> tensor<8xf32> attributes {ds.segment = #ds.segment<forward>} {
  %h = ds.tanh %x : tensor<8xf32>
  ds.send %h to 1 along pp : tensor<8xf32>
  %d = ds.recv from 1 along pp : tensor<8xf32>
  %z = ds.mul %h, %d : tensor<8xf32>
  return %z : tensor<8xf32>
}

// Along an axis of data all ranks run one text: there is nothing to keep.
// CHECK-LABEL: func.func @fuses_around_others
// CHECK: ds.all_reduce
// CHECK: ds.fused
// CHECK: ds.tanh
// CHECK: ds.mul
// CHECK: ds.all_gather
func.func @fuses_around_others(%x: tensor<8xf32> {ds.input = "x"}, %y: tensor<8xf32> {ds.input = "y"}) -> (tensor<8xf32>, tensor<8xf32>) attributes {ds.segment = #ds.segment<forward>} {
  %h = ds.tanh %x : tensor<8xf32>
  %g = ds.all_gather %h along tp : tensor<8xf32> -> tensor<8xf32>
  %d = ds.all_reduce sum %y along tp : tensor<8xf32>
  %z = ds.mul %h, %d : tensor<8xf32>
  return %g, %z : tensor<8xf32>, tensor<8xf32>
}

//--- order.mlir
// %w could be given up before %y is made, if what is received came first.
// CHECK-LABEL: func.func @keeps_messages
// CHECK: ds.send
// CHECK: ds.recv
ds.mesh @mesh axes [pp = 2] stages pp
func.func @keeps_messages(%x: tensor<64x1024xf32> {ds.input = "x"}) -> tensor<64x1xf32> attributes {ds.segment = #ds.segment<forward>} {
  %w = ds.exp %x : tensor<64x1024xf32>
  %v = ds.reduce sum %w dims [0, 1] : tensor<64x1024xf32> -> tensor<f32>
  %y = ds.broadcast %v dims [] : tensor<f32> -> tensor<64x1024xf32>
  ds.send %y to 1 along pp : tensor<64x1024xf32>
  %r = ds.recv from 1 along pp : tensor<1024x1xf32>
  %z = ds.matmul %w, %r : tensor<64x1024xf32>, tensor<1024x1xf32> -> tensor<64x1xf32>
  return %z : tensor<64x1xf32>
}

//--- overlap.mlir
// A sum of all stages is a reduction like others, but is not issued before what was sent before it.
// CHECK-LABEL: func.func @keeps_sums
// CHECK: ds.communicate send
// CHECK: ds.communicate all_reduce
!act = !ds.buffer<tensor<8xf32>, [1], device>
!one = !ds.buffer<tensor<f64>, [], device>
ds.mesh @mesh axes [pp = 2] stages pp
func.func @keeps_sums(%x: !act {ds.input = "x"}, %n: !one {ds.state = @n}) attributes {ds.segment = #ds.segment<forward, update>} {
  %y = ds.alloc activations : !act
  ds.call copy(%x, %y) writes [1] params [] on compute : !act, !act
  ds.communicate send ins(%y) outs() along pp carries transfer on transfer {peer = 1 : i64} : (!act) -> ()
  ds.communicate all_reduce ins(%n) outs(%n) reduce sum along pp carries statistic on reduce : (!one) -> !one
  return
}
ds.state @n role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f64>

//--- exchange.mlir
// Messages side by side are one exchange, and stay so: what the second needs is waited for before the first, and that the first has passed is
// recorded behind the second.
// CHECK-LABEL: func.func @keeps_exchanges_whole
// CHECK: ds.wait {{[0-9]+}} on transfer
// CHECK: ds.wait {{[0-9]+}} on transfer
// CHECK-NOT: on transfer
// CHECK: ds.communicate send
// CHECK-NEXT: ds.communicate recv
// CHECK-NEXT: ds.record [[DONE:[0-9]+]] on transfer
// CHECK: ds.wait [[DONE]] on compute
// CHECK-NEXT: ds.call fill
!act = !ds.buffer<tensor<8xf32>, [1], device>
ds.mesh @mesh axes [pp = 2, dp = 2] samples dp stages pp
func.func @keeps_exchanges_whole(%x: !act {ds.input = "x"}, %a: !act {ds.input = "a"}, %b: !act {ds.input = "b"}) attributes {ds.segment = #ds.segment<forward, update>} {
  ds.call copy(%x, %a) writes [1] params [] on compute : !act, !act
  ds.communicate all_reduce ins(%b) outs(%b) reduce sum along dp carries statistic on reduce : (!act) -> !act
  ds.communicate send ins(%a) outs() along pp carries transfer on transfer {peer = 1 : i64} : (!act) -> ()
  ds.communicate recv ins() outs(%b) along pp carries transfer on transfer {peer = 1 : i64} : () -> !act
  ds.call fill(%a) writes [0] params [0.0] on compute : !act
  return
}
