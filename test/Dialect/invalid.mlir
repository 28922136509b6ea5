// RUN: ds-opt %s --split-input-file --verify-diagnostics

// One case per constraint, named after the op and the constraint.

//===----------------------------------------------------------------------===//
// Elementwise ops
//===----------------------------------------------------------------------===//

func.func @compare_c1_other_shape(%a: tensor<4xf32>) {
  // expected-error@+1 {{failed to verify that result has the operands' shape and i1 elements}}
  %r = "ds.compare"(%a, %a) <{predicate = #ds<predicate lt>}> : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xi1>
  return
}

// -----

func.func @select_condition_of_another_shape(%c: tensor<8xi1>, %a: tensor<4xf32>) {
  // expected-error@+1 {{failed to verify that condition has the result's shape and i1 elements}}
  %r = "ds.select"(%c, %a, %a) : (tensor<8xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @add_of_two_shapes(%a: tensor<4xf32>, %b: tensor<8xf32>) {
  // expected-error@+1 {{'ds.add' op requires the same type for all operands and results}}
  %r = "ds.add"(%a, %b) : (tensor<4xf32>, tensor<8xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @exp_of_integers(%a: tensor<4xi64>) {
  // expected-error@+1 {{'ds.exp' op operand #0 must be ranked tensor of floating-point values, but got 'tensor<4xi64>'}}
  %r = ds.exp %a : tensor<4xi64>
  return
}

// -----

func.func @convert_to_another_shape(%a: tensor<4xf32>) {
  // expected-error@+1 {{'ds.convert' op requires the same shape for all operands and results}}
  %r = ds.convert %a : tensor<4xf32> -> tensor<8xi64>
  return
}

// -----

//===----------------------------------------------------------------------===//
// Shape ops
//===----------------------------------------------------------------------===//

func.func @random_uniform_c1_numbers(%r: tensor<2xi64>, %n: tensor<4x9xi64>) {
  // expected-error@+1 {{'ds.random_uniform' op expects numbers to be 'tensor<4x8xi64>', but got 'tensor<4x9xi64>'}}
  %u = ds.random_uniform %r id 3 first 0 numbers(%n) : tensor<2xi64>, tensor<4x9xi64> -> tensor<4x8xf32>
  return
}

// -----

func.func @iota_c1_dimension() {
  // expected-error@+1 {{'ds.iota' op expects a dimension below the rank 2, but got 2}}
  %r = ds.iota dim 2 start 0 step 1 : tensor<4x8xi64>
  return
}

// -----

func.func @broadcast_c1_too_few(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.broadcast' op expects one increasing result dimension per dimension of 'tensor<4x8xf32>' in 'tensor<4x8xf32>', but got [0]}}
  %r = ds.broadcast %x dims [0] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @broadcast_c1_not_increasing(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.broadcast' op expects one increasing result dimension per dimension of 'tensor<4x8xf32>' in 'tensor<8x4xf32>', but got [1, 0]}}
  %r = ds.broadcast %x dims [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  return
}

// -----

func.func @broadcast_c1_beyond_the_rank(%x: tensor<8xf32>) {
  // expected-error@+1 {{'ds.broadcast' op expects one increasing result dimension per dimension of 'tensor<8xf32>' in 'tensor<4x8xf32>', but got [2]}}
  %r = ds.broadcast %x dims [2] : tensor<8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @broadcast_c2_wrong_size(%x: tensor<8xf32>) {
  // expected-error@+1 {{'ds.broadcast' op expects input dimension 0 to have size 1 or 4, but got 8}}
  %r = ds.broadcast %x dims [0] : tensor<8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @broadcast_c3_element_type(%x: tensor<8xf32>) {
  // expected-error@+1 {{'ds.broadcast' op expects element type 'f32', but got 'f16'}}
  %r = ds.broadcast %x dims [1] : tensor<8xf32> -> tensor<4x8xf16>
  return
}

// -----

func.func @reshape_c1_count(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.reshape' op expects 32 elements, but got 33}}
  %r = ds.reshape %x : tensor<4x8xf32> -> tensor<33xf32>
  return
}

// -----

func.func @reshape_c2_element_type(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.reshape' op expects element type 'f32', but got 'f16'}}
  %r = ds.reshape %x : tensor<4x8xf32> -> tensor<32xf16>
  return
}

// -----

func.func @transpose_c1_no_permutation(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.transpose' op expects a permutation of 2 dimensions, but got [0, 0]}}
  %r = ds.transpose %x perm [0, 0] : tensor<4x8xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @transpose_c2_result(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.transpose' op expects result type 'tensor<8x4xf32>', but got 'tensor<4x8xf32>'}}
  %r = ds.transpose %x perm [1, 0] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @slice_c1_offsets(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.slice' op expects 2 offsets and positive strides, but got [0] and [1, 1]}}
  %r = ds.slice %x offsets [0] strides [1, 1] : tensor<4x8xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @slice_c1_stride(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.slice' op expects 2 offsets and positive strides, but got [0, 0] and [1, 0]}}
  %r = ds.slice %x offsets [0, 0] strides [1, 0] : tensor<4x8xf32> -> tensor<4x4xf32>
  return
}

// -----

// 2 + 2 * (4 - 1) + 1 = 9.
func.func @slice_c2_outside(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.slice' op expects dimension 1 to stay within [0, 8), but got [2, 9)}}
  %r = ds.slice %x offsets [0, 2] strides [1, 2] : tensor<4x8xf32> -> tensor<4x4xf32>
  return
}

// -----

func.func @slice_c2_before(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.slice' op expects dimension 0 to stay within [0, 4), but got [-1, 3)}}
  %r = ds.slice %x offsets [-1, 0] strides [1, 1] : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @slice_c3_rank(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.slice' op expects rank 2, but got 1}}
  %r = ds.slice %x offsets [0, 0] strides [1, 1] : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @slice_c3_element_type(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.slice' op expects element type 'f32', but got 'f16'}}
  %r = ds.slice %x offsets [0, 0] strides [1, 1] : tensor<4x8xf32> -> tensor<4x4xf16>
  return
}

// -----

func.func @pad_c1_strides(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{'ds.pad' op expects 2 offsets and positive strides, but got [0, 0] and [1, -1]}}
  %r = ds.pad %x offsets [0, 0] strides [1, -1] : tensor<4x4xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @pad_c2_outside(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{'ds.pad' op expects dimension 1 to stay within [0, 8), but got [5, 9)}}
  %r = ds.pad %x offsets [0, 5] strides [1, 1] : tensor<4x4xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @pad_c3_rank(%x: tensor<4xf32>) {
  // expected-error@+1 {{'ds.pad' op expects rank 2, but got 1}}
  %r = ds.pad %x offsets [0, 0] strides [1, 1] : tensor<4xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @concat_c1_no_input() {
  // expected-error@+1 {{'ds.concat' op expects a piece and a dimension below 1, but got 0 pieces and dimension 0}}
  %r = "ds.concat"() <{dim = 0 : i64}> : () -> tensor<4xf32>
  return
}

// -----

func.func @concat_c1_dimension(%a: tensor<4xf32>) {
  // expected-error@+1 {{'ds.concat' op expects a piece and a dimension below 1, but got 1 pieces and dimension 1}}
  %r = ds.concat %a dim 1 : tensor<4xf32> -> tensor<4xf32>
  return
}

// -----

func.func @concat_c2_other_size(%a: tensor<2x8xf32>, %b: tensor<3x7xf32>) {
  // expected-error@+1 {{'ds.concat' op expects pieces like 'tensor<5x8xf32>' but in dimension 0, but got 'tensor<3x7xf32>'}}
  %r = ds.concat %a, %b dim 0 : tensor<2x8xf32>, tensor<3x7xf32> -> tensor<5x8xf32>
  return
}

// -----

func.func @concat_c2_element_type(%a: tensor<2x8xf32>, %b: tensor<3x8xf16>) {
  // expected-error@+1 {{'ds.concat' op expects pieces like 'tensor<5x8xf32>' but in dimension 0, but got 'tensor<3x8xf16>'}}
  %r = ds.concat %a, %b dim 0 : tensor<2x8xf32>, tensor<3x8xf16> -> tensor<5x8xf32>
  return
}

// -----

func.func @concat_c3_sum(%a: tensor<2x8xf32>) {
  // expected-error@+1 {{'ds.concat' op expects sizes that add up to 5, but got 4}}
  %r = ds.concat %a, %a dim 0 : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<5x8xf32>
  return
}

// -----

func.func @split_c1_dimension(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.split' op expects a piece and a dimension below 2, but got 1 pieces and dimension 2}}
  %r = ds.split %x dim 2 : tensor<4x8xf32> -> tensor<4x8xf32>
  return
}

// -----

func.func @split_c2_other_size(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.split' op expects pieces like 'tensor<4x8xf32>' but in dimension 1, but got 'tensor<3x8xf32>'}}
  %r = ds.split %x dim 1 : tensor<4x8xf32> -> tensor<3x8xf32>
  return
}

// -----

func.func @split_c3_sum(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.split' op expects sizes that add up to 8, but got 7}}
  %r:2 = ds.split %x dim 1 : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x5xf32>
  return
}

// -----

func.func @reduce_c1_repeated(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.reduce' op expects increasing dimensions below 2, but got [1, 1]}}
  %r = ds.reduce sum %x dims [1, 1] : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @reduce_c1_beyond_the_rank(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.reduce' op expects increasing dimensions below 2, but got [2]}}
  %r = ds.reduce sum %x dims [2] : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// -----

func.func @reduce_c2_result(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{'ds.reduce' op expects result type 'tensor<4xf32>', but got 'tensor<8xf32>'}}
  %r = ds.reduce sum %x dims [1] : tensor<4x8xf32> -> tensor<8xf32>
  return
}

// -----

// expected-error@+1 {{expects ds.phase to be as #ds.phase<step>, but got "step"}}
module attributes {ds.phase = "step"} {
}

// -----

// expected-error@+1 {{expects ds.training to be as #ds.training<gradient_accumulation_steps = 2>, but got {gradient_accumulation_steps = 2 : i64}}}
module attributes {ds.training = {gradient_accumulation_steps = 2 : i64}} {
}

// -----

// expected-error@+1 {{expects ds.indices to be as [#ds.indices<"tokens" below 100>], but got [100]}}
module attributes {ds.indices = [100]} {
}

// -----

// expected-error@+1 {{'func.func' op expects no ds.training: a module has it}}
func.func @training_of_a_function() attributes {ds.training = #ds.training<>} {
  return
}

// -----

// expected-error@+1 {{expects ds.decisions to be as #ds.decisions<>, but got unit}}
module attributes {ds.decisions} {
}

// -----

// expected-error@+1 {{ds.decisions expects the rows of pieces for residency.loss.rows, but got 3}}
module attributes {ds.decisions = #ds.decisions<residency = {loss = {rows = 3, pieces = [{rows = 2, chunks = 5}]}}>} {
}

// -----

// expected-error@+1 {{ds.decisions has no key "by" in residency.largest.next}}
module attributes {ds.decisions = #ds.decisions<residency = {largest = [{next = {by = kept}}]}>} {
}

// -----

// expected-error@+1 {{expects ds.machine to be as #ds.machine<target = "cuda:sm_90">, but got "cpu"}}
module attributes {ds.machine = "cpu"} {
}

// -----

// expected-error@+1 {{ds.machine expects cpu or as cuda:sm_90 for target, but got "cuda:90"}}
module attributes {ds.machine = #ds.machine<target = "cuda:90">} {
}

// -----

// expected-error@+1 {{ds.machine expects at least 1 for threads, but got 0}}
module attributes {ds.machine = #ds.machine<threads = 0>} {
}

// -----

// expected-error@+1 {{ds.machine expects at least 1 for memory.device, but got 0}}
module attributes {ds.machine = #ds.machine<memory = {device = 0}>} {
}

// -----

// expected-error@+1 {{ds.machine expects at least 1 for memory.host, but got -1}}
module attributes {ds.machine = #ds.machine<memory = {host = -1}>} {
}

// -----

// expected-error@+1 {{ds.machine expects at least 0 for attention_bytes, but got -1}}
module attributes {ds.machine = #ds.machine<attention_bytes = -1>} {
}

// -----

module {
  // expected-error@+1 {{'ds.files' op expects config to be the text of one JSON object of at most 16777216 bytes}}
  ds.files config "[1]"
}

// -----

module {
  // expected-note@+1 {{the first one is here}}
  ds.files converts
  // expected-error@+1 {{'ds.files' op expects to be the only one of a module}}
  ds.files unused ["w"]
}

// -----

// expected-error@+1 {{'func.func' op expects no ds.phase: a module has it}}
func.func @phase_of_a_function() attributes {ds.phase = #ds.phase<step>} {
  return
}
