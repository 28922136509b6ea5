// RUN: ds-opt %s --split-input-file --verify-diagnostics

// States, regions, buffers and commands.

// expected-error@+1 {{'ds.state' op expects an owner exactly for gradients, moments and masters without a bucket, but got role moment without one}}
ds.state @state_c1_moment_without_owner role(moment) slot("state_c1_moment_without_owner") init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>

// -----

// expected-error@+1 {{'ds.state' op expects a matrix of floats with an even number of columns, at least 4, to start as #ds.init<sinusoid, 1.000000e+04, 0.000000e+00>, but got 'tensor<8xf32>'}}
ds.state @state_c9_row role(parameter) init(#ds.init<sinusoid, 10000.0, 0.0>) home(device) : tensor<8xf32>

// -----

// expected-error@+1 {{'ds.state' op expects a matrix of floats with an even number of columns, at least 4, to start as #ds.init<sinusoid, 1.000000e+04, 0.000000e+00>, but got 'tensor<8x5xf32>'}}
ds.state @state_c9_odd role(parameter) init(#ds.init<sinusoid, 10000.0, 0.0>) home(device) : tensor<8x5xf32>

// -----

// expected-error@+1 {{, but got 'tensor<8x2xf32>'}}
ds.state @state_c9_narrow role(parameter) init(#ds.init<sinusoid, 10000.0, 0.0>) home(device) : tensor<8x2xf32>

// -----

// expected-error@+1 {{, but got 'tensor<8x4xi64>'}}
ds.state @state_c9_integers role(buffer) init(#ds.init<sinusoid, 10000.0, 0.0>) home(device) : tensor<8x4xi64>

// -----

// expected-error@+1 {{to start as #ds.init<sinusoid, 0.000000e+00, 0.000000e+00>, but got 'tensor<8x4xf32>'}}
ds.state @state_c9_standing role(parameter) init(#ds.init<sinusoid, 0.0, 0.0>) home(device) : tensor<8x4xf32>

// -----

ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
// expected-error@+1 {{'ds.state' op expects an owner exactly for gradients, moments and masters without a bucket, but got role buffer with one}}
ds.state @state_c1_buffer_with_owner role(buffer) owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>

// -----

ds.state @b role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>
// expected-error@+1 {{'ds.state' op expects its owner to be a parameter, but got @b}}
ds.state @state_c1_owner_is_no_parameter role(moment) slot("state_c1_owner_is_no_parameter") owner(@b) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>

// -----

// expected-error@+1 {{'ds.state' op expects only parameters to be trainable, but got role buffer}}
ds.state @state_c2_trainable_buffer role(buffer) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<4xf32>

// -----

// expected-error@+1 {{'ds.state' op expects a static tensor type, but got 'tensor<?xf32>'}}
ds.state @state_of_any_size role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<?xf32>

// -----

func.func @fused_c1_arguments(%a: tensor<4xf32>) {
  // expected-error@+1 {{'ds.fused' op expects 1 block arguments of the operands' types}}
  %r = ds.fused (%a) : (tensor<4xf32>) -> tensor<8xf32> {
  ^bb0(%x: tensor<8xf32>):
    ds.yield %x : tensor<8xf32>
  }
  return
}

// -----

func.func @fused_c1_results(%a: tensor<4xf32>) {
  // expected-error@+1 {{'ds.fused' op expects to yield 1 values of the results' types}}
  %r = ds.fused (%a) : (tensor<4xf32>) -> tensor<8xf32> {
  ^bb0(%x: tensor<4xf32>):
    ds.yield %x : tensor<4xf32>
  }
  return
}

// -----

func.func @fused_c2_library_op(%a: tensor<4x4xf32>) {
  // expected-error@+1 {{'ds.fused' op expects fusable ops in its body, but got ds.matmul}}
  %r = ds.fused (%a) : (tensor<4x4xf32>) -> tensor<4x4xf32> {
  ^bb0(%x: tensor<4x4xf32>):
    // expected-note@+1 {{this op}}
    %m = ds.matmul %x, %x : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
    ds.yield %m : tensor<4x4xf32>
  }
  return
}

// -----

// expected-error@+1 {{'ds.kernel' op expects 1 arguments and a yielded value for each other of 2 buffers, but got 2 and 1}}
ds.kernel @kernel_c1_arguments inputs 1 buffers [!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>] {
^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
  ds.yield %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{'ds.kernel' op expects buffer 1 to hold 'tensor<4xf32>', but got !ds.buffer<tensor<8xf32>, [1], device>}}
ds.kernel @kernel_c2_other_shape inputs 1 buffers [!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<8xf32>, [1], device>] {
^bb0(%x: tensor<4xf32>):
  ds.yield %x : tensor<4xf32>
}

// -----

func.func @alloc_c1_strided() {
  // expected-error@+1 {{'ds.alloc' op expects a contiguous buffer, but got '!ds.buffer<tensor<4x8xf32>, [1, 4], device>'}}
  %a = ds.alloc activations : !ds.buffer<tensor<4x8xf32>, [1, 4], device>
  return
}

// -----

func.func @view_c1_element_type(%a: !ds.buffer<tensor<4xf32>, [1], device>) {
  // expected-error@+1 {{'ds.view' op expects the element type and space of '!ds.buffer<tensor<4xf32>, [1], device>', but got '!ds.buffer<tensor<4xi32>, [1], device>'}}
  %v = ds.view %a offset 0 : !ds.buffer<tensor<4xf32>, [1], device> -> !ds.buffer<tensor<4xi32>, [1], device>
  return
}

// -----

func.func @view_c1_space(%a: !ds.buffer<tensor<4xf32>, [1], device>) {
  // expected-error@+1 {{'ds.view' op expects the element type and space of '!ds.buffer<tensor<4xf32>, [1], device>', but got '!ds.buffer<tensor<4xf32>, [1], host>'}}
  %v = ds.view %a offset 0 : !ds.buffer<tensor<4xf32>, [1], device> -> !ds.buffer<tensor<4xf32>, [1], host>
  return
}

// -----

// 1 + 3 * 8 + 7 + 1 = 33.
func.func @view_c2_outside(%a: !ds.buffer<tensor<4x8xf32>, [8, 1], device>) {
  // expected-error@+1 {{'ds.view' op expects to end within 32 elements, but got 33}}
  %v = ds.view %a offset 1 : !ds.buffer<tensor<4x8xf32>, [8, 1], device> -> !ds.buffer<tensor<4x8xf32>, [8, 1], device>
  return
}

// -----

func.func @launch_c1_no_kernel(%a: !ds.buffer<tensor<4xf32>, [1], device>) {
  // expected-error@+1 {{'ds.launch' op expects a kernel, but got @nothing}}
  ds.launch @nothing ins(%a) outs(%a) on compute : (!ds.buffer<tensor<4xf32>, [1], device>) -> (!ds.buffer<tensor<4xf32>, [1], device>)
  return
}

// -----

ds.kernel @k inputs 1 buffers [!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>] {
^bb0(%x: tensor<4xf32>):
  ds.yield %x : tensor<4xf32>
}
func.func @launch_c1_missing_buffer(%a: !ds.buffer<tensor<4xf32>, [1], device>) {
  // expected-error@+1 {{'ds.launch' op expects 2 buffers, 1 of them inputs, but got 1 and 0}}
  ds.launch @k ins() outs(%a) on compute : () -> (!ds.buffer<tensor<4xf32>, [1], device>)
  return
}

// -----

// expected-note@+1 {{kernel @k is defined here}}
ds.kernel @k inputs 1 buffers [!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>] {
^bb0(%x: tensor<4xf32>):
  ds.yield %x : tensor<4xf32>
}
func.func @launch_c1_other_layout(%a: !ds.buffer<tensor<4xf32>, [2], device>, %b: !ds.buffer<tensor<4xf32>, [1], device>) {
  // expected-error@+1 {{'ds.launch' op expects buffer 0 to be '!ds.buffer<tensor<4xf32>, [1], device>', but got '!ds.buffer<tensor<4xf32>, [2], device>'}}
  ds.launch @k ins(%a) outs(%b) on compute : (!ds.buffer<tensor<4xf32>, [2], device>) -> (!ds.buffer<tensor<4xf32>, [1], device>)
  return
}

// -----

ds.kernel @any inputs 1 buffers [!ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>] {
^bb0(%x: tensor<?xf32>):
  ds.yield %x : tensor<?xf32>
}
func.func @launch_c2_no_extent(%a: !ds.buffer<tensor<4xf32>, [1], device>) {
  // expected-error@+1 {{'ds.launch' op expects an extent exactly where the kernel serves any size}}
  ds.launch @any ins(%a) outs(%a) on compute : (!ds.buffer<tensor<4xf32>, [1], device>) -> (!ds.buffer<tensor<4xf32>, [1], device>)
  return
}

// -----

ds.kernel @k inputs 1 buffers [!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>] {
^bb0(%x: tensor<4xf32>):
  ds.yield %x : tensor<4xf32>
}
func.func @launch_c2_extent(%a: !ds.buffer<tensor<4xf32>, [1], device>) {
  // expected-error@+1 {{'ds.launch' op expects an extent exactly where the kernel serves any size}}
  ds.launch @k ins(%a) outs(%a) extent 4 on compute : (!ds.buffer<tensor<4xf32>, [1], device>) -> (!ds.buffer<tensor<4xf32>, [1], device>)
  return
}

// -----

func.func @call_unknown_function(%a: !ds.buffer<tensor<4xf32>, [1], device>) {
  // expected-error@+1 {{expects one of matmul, attention_forward, attention_backward, embedding_forward, embedding_backward, cross_entropy_forward, cross_entropy_backward, fill, copy, conv_forward, conv_backward_input, conv_backward_weight, sum_of_squares, cross_entropy_with_gradient, but got sort}}
  ds.call sort(%a) writes [0] params [] on compute : !ds.buffer<tensor<4xf32>, [1], device>
  return
}

// -----

func.func @alloc_unknown_category() {
  // expected-error@+1 {{expects one of activations, gradients, optimizer, communication, workspace, but got scratch}}
  %a = ds.alloc scratch : !ds.buffer<tensor<4xf32>, [1], device>
  return
}

// -----

func.func @call_c1_writes(%a: !ds.buffer<tensor<4xf32>, [1], device>) {
  // expected-error@+1 {{'ds.call' op expects to write operands below 1, but got 1}}
  ds.call fill(%a) writes [1] params [0.0 : f64] on compute : !ds.buffer<tensor<4xf32>, [1], device>
  return
}

// -----

// expected-error@+1 {{expects one stride per dimension of 'tensor<4x8xf32>', but got 1}}
func.func @buffer_of_too_few_strides(%a: !ds.buffer<tensor<4x8xf32>, [1], device>)

// -----

// expected-error@+1 {{expects strides that are not negative, but got -1}}
func.func @buffer_of_a_negative_stride(%a: !ds.buffer<tensor<4xf32>, [-1], device>)

// -----

ds.kernel @any inputs 2 buffers [!ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<?xf32>, [1], device>] {
^bb0(%x: tensor<?xf32>, %s: tensor<f32>):
  ds.yield %x : tensor<?xf32>
}
func.func @launch_c3_items(%a: !ds.buffer<tensor<4xf32>, [1], device>, %b: !ds.buffer<tensor<8xf32>, [1], device>, %s: !ds.buffer<tensor<f32>, [], device>, %t: !ds.buffer<tensor<f32>, [], device>) {
  // expected-error@+1 {{'ds.launch' op expects at most 1 items, but got 2}}
  ds.launch @any ins(%a, %s, %b, %s) outs(%a, %b) extent 4, 8 on compute : (!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> (!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<8xf32>, [1], device>)
  return
}

// -----

ds.kernel @any inputs 2 buffers [!ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<?xf32>, [1], device>] items 2 {
^bb0(%x: tensor<?xf32>, %s: tensor<f32>):
  ds.yield %x : tensor<?xf32>
}
func.func @launch_c3_scalars(%a: !ds.buffer<tensor<4xf32>, [1], device>, %b: !ds.buffer<tensor<8xf32>, [1], device>, %s: !ds.buffer<tensor<f32>, [], device>, %t: !ds.buffer<tensor<f32>, [], device>) {
  // expected-error@+1 {{'ds.launch' op expects all items to share their inputs of rank 0}}
  ds.launch @any ins(%a, %s, %b, %t) outs(%a, %b) extent 4, 8 on compute : (!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<8xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> (!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<8xf32>, [1], device>)
  return
}

// -----

ds.kernel @any inputs 2 buffers [!ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<?xf32>, [1], device>] items 2 {
^bb0(%x: tensor<?xf32>, %s: tensor<f32>):
  ds.yield %x : tensor<?xf32>
}
func.func @launch_c1_items(%a: !ds.buffer<tensor<4xf32>, [1], device>, %b: !ds.buffer<tensor<8xf32>, [1], device>, %s: !ds.buffer<tensor<f32>, [], device>, %t: !ds.buffer<tensor<f32>, [], device>) {
  // expected-error@+1 {{'ds.launch' op expects 6 buffers, 4 of them inputs, but got 3 and 2}}
  ds.launch @any ins(%a, %s) outs(%a) extent 4, 8 on compute : (!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<f32>, [], device>) -> (!ds.buffer<tensor<4xf32>, [1], device>)
  return
}

// -----

// expected-error@+1 {{'ds.kernel' op expects items only where it serves any size}}
ds.kernel @k inputs 1 buffers [!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>] items 2 {
^bb0(%x: tensor<4xf32>):
  ds.yield %x : tensor<4xf32>
}

// -----

// expected-error@+1 {{'ds.state' op attribute 'stay' failed to satisfy constraint: how long a gathered parameter stays}}
ds.state @w role(parameter) init(#ds.init<zero, 0.0, 0.0>) home(device) {stay = "segment"} : tensor<4xf32>

// -----

ds.kernel @k inputs 1 buffers [!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>] {
^bb0(%x: tensor<4xf32>):
  ds.yield %x : tensor<4xf32>
}
func.func @launch_c5_stream(%a: !ds.buffer<tensor<4xf32>, [1], device>, %p: !ds.buffer<tensor<i1>, [], host>) {
  // expected-error@+1 {{'ds.launch' op expects stream host where it has a predicate, but got compute}}
  ds.launch @k ins(%a) outs(%a) when(%p : !ds.buffer<tensor<i1>, [], host>) on compute : (!ds.buffer<tensor<4xf32>, [1], device>) -> !ds.buffer<tensor<4xf32>, [1], device>
  return
}

// -----

ds.kernel @k inputs 1 buffers [!ds.buffer<tensor<4xf32>, [1], host>, !ds.buffer<tensor<4xf32>, [1], host>] {
^bb0(%x: tensor<4xf32>):
  ds.yield %x : tensor<4xf32>
}
func.func @launch_c5_truth(%a: !ds.buffer<tensor<4xf32>, [1], host>, %p: !ds.buffer<tensor<i1>, [], device>) {
  // expected-error@+1 {{'ds.launch' op expects a truth value in the host's memory as predicate, but got '!ds.buffer<tensor<i1>, [], device>'}}
  ds.launch @k ins(%a) outs(%a) when(%p : !ds.buffer<tensor<i1>, [], device>) on host : (!ds.buffer<tensor<4xf32>, [1], host>) -> !ds.buffer<tensor<4xf32>, [1], host>
  return
}

// -----

func.func @presumed_c1_truth(%c: !ds.buffer<tensor<f32>, [], device>, %w: !ds.buffer<tensor<i1>, [], host>) {
  // expected-error@+1 {{'ds.presumed' op expects scalars in the host's memory, but got '!ds.buffer<tensor<f32>, [], device>'}}
  ds.presumed %c as %c unless %w : !ds.buffer<tensor<f32>, [], device>, !ds.buffer<tensor<i1>, [], host>
  return
}

// -----

func.func @presumed_c1_wrong(%c: !ds.buffer<tensor<f32>, [], host>) {
  // expected-error@+1 {{'ds.presumed' op expects a truth value in the host's memory, but got '!ds.buffer<tensor<f32>, [], host>'}}
  ds.presumed %c as %c unless %c : !ds.buffer<tensor<f32>, [], host>, !ds.buffer<tensor<f32>, [], host>
  return
}
