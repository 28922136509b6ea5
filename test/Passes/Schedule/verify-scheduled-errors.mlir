// RUN: ds-opt %s --ds-verify-scheduled --split-input-file --verify-diagnostics

// expected-error@+1 {{'func.func' op expects no results after bufferisation, but got 1}}
func.func @e1_results(%x: !ds.buffer<tensor<4xf32>, [1], device> {ds.input = "x"}) -> !ds.buffer<tensor<4xf32>, [1], device> {
  return %x : !ds.buffer<tensor<4xf32>, [1], device>
}

// -----

// expected-error@+1 {{'func.func' op expects buffers, but got 'i32' as argument 0}}
func.func @e1_another_argument(%x: i32 {ds.input = "x"}) {
  return
}

// -----

func.func @e1_another_op() {
  // expected-error@+2 {{'arith.constant' op expects to be replaced by buffers and commands}}
  // expected-note@+1 {{run ds-fuse-regions and ds-bufferize first}}
  %c = arith.constant 1 : i32
  return
}

// -----

// expected-error@+1 {{'func.func' op expects argument 0 to be a state or an input, but it is neither}}
func.func @e2_neither(%x: !ds.buffer<tensor<4xf32>, [1], device>) {
  return
}

// -----

ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
// expected-error@+1 {{'func.func' op expects argument 0 to be a state or an input, but it is both}}
func.func @e2_both(%x: !ds.buffer<tensor<4xf32>, [1], device> {ds.state = @w, ds.input = "x"}) {
  return
}

// -----

// expected-error@+1 {{'func.func' op expects a state, but got @nothing}}
func.func @e2_unknown_state(%x: !ds.buffer<tensor<4xf32>, [1], device> {ds.state = @nothing}) {
  return
}

// -----

// expected-note@+1 {{the state is 'tensor<2x2xf32>'}}
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x2xf32>
// expected-error@+1 {{'func.func' op expects argument 0 to hold the whole of state @w, but got '!ds.buffer<tensor<4xf32>, [1], device>'}}
func.func @e2_other_shape(%w: !ds.buffer<tensor<4xf32>, [1], device> {ds.state = @w}) {
  return
}

// -----

// expected-note@+1 {{the state is 'tensor<2x2xf32>'}}
ds.state @w role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<2x2xf32>
// expected-error@+1 {{'func.func' op expects argument 0 to hold the whole of state @w, but got '!ds.buffer<tensor<2x2xf32>, [1, 2], device>'}}
func.func @e2_other_layout(%w: !ds.buffer<tensor<2x2xf32>, [1, 2], device> {ds.state = @w}) {
  return
}

// -----

func.func @e3_missing_buffer(%x: !ds.buffer<tensor<4xf32>, [1], device> {ds.input = "x"}) {
  // expected-error@+1 {{'ds.call' op expects 2 to 2 buffers for copy, but got 1}}
  ds.call copy(%x) writes [0] params [] on compute : !ds.buffer<tensor<4xf32>, [1], device>
  return
}

// -----

func.func @e3_copy_of_another_shape(%x: !ds.buffer<tensor<4xf32>, [1], device> {ds.input = "x"}, %y: !ds.buffer<tensor<2x2xf32>, [2, 1], device> {ds.input = "y"}) {
  // expected-error@+1 {{'ds.call' op expects to copy 'tensor<4xf32>' to its like, but got 'tensor<2x2xf32>'}}
  ds.call copy(%x, %y) writes [1] params [] on compute : !ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<2x2xf32>, [2, 1], device>
  return
}

// -----

func.func @e4_unused() {
  // expected-error@+1 {{'ds.alloc' op expects a command to use it}}
  %a = ds.alloc activations : !ds.buffer<tensor<4xf32>, [1], device>
  return
}

// -----

func.func @e4_read_before_written(%x: !ds.buffer<tensor<2xf32>, [1], device> {ds.input = "x"}) {
  // expected-note@+1 {{nothing has written this allocation yet}}
  %a = ds.alloc activations : !ds.buffer<tensor<4xf32>, [1], device>
  %v = ds.view %a offset 2 : !ds.buffer<tensor<4xf32>, [1], device> -> !ds.buffer<tensor<2xf32>, [1], device>
  // expected-error@+1 {{'ds.call' op expects what it reads to be written before}}
  ds.call copy(%v, %x) writes [1] params [] on compute : !ds.buffer<tensor<2xf32>, [1], device>, !ds.buffer<tensor<2xf32>, [1], device>
  ds.call fill(%a) writes [0] params [0.0 : f64] on compute : !ds.buffer<tensor<4xf32>, [1], device>
  return
}

// -----

// expected-error@+1 {{'ds.kernel' op expects fusable ops, but got ds.matmul}}
ds.kernel @e5_library_op inputs 1 buffers [!ds.buffer<tensor<4x4xf32>, [4, 1], device>, !ds.buffer<tensor<4x4xf32>, [4, 1], device>] {
^bb0(%v: tensor<4x4xf32>):
  // expected-note@+1 {{this op}}
  %d = ds.matmul %v, %v : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  ds.yield %d : tensor<4x4xf32>
}

// -----

func.func @e7_stages_on_another_stream(%x: !ds.buffer<tensor<64x2x32xf32>, [64, 32, 1], device> {ds.input = "x"}) {
  %p = ds.alloc activations : !ds.buffer<tensor<2x32xf32>, [32, 1], device>
  %s = ds.alloc activations : !ds.buffer<tensor<32xf32>, [1], device>
  // expected-error@+1 {{'ds.launch' op expects stream compute for a kernel of two stages, but got transfer}}
  ds.launch @both ins(%x) outs(%p, %s) on transfer : (!ds.buffer<tensor<64x2x32xf32>, [64, 32, 1], device>) -> (!ds.buffer<tensor<2x32xf32>, [32, 1], device>, !ds.buffer<tensor<32xf32>, [1], device>)
  return
}
// expected-note@+1 {{this kernel reduces what it yields}}
ds.kernel @both inputs 1 buffers [!ds.buffer<tensor<64x2x32xf32>, [64, 32, 1], device>, !ds.buffer<tensor<2x32xf32>, [32, 1], device>, !ds.buffer<tensor<32xf32>, [1], device>] {
^bb0(%x: tensor<64x2x32xf32>):
  %p = ds.reduce sum %x dims [0] : tensor<64x2x32xf32> -> tensor<2x32xf32>
  %s = ds.reduce sum %p dims [0] : tensor<2x32xf32> -> tensor<32xf32>
  ds.yield %p, %s : tensor<2x32xf32>, tensor<32xf32>
}
