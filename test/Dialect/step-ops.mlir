// RUN: ds-opt %s --split-input-file --verify-diagnostics | ds-opt --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @sums
// CHECK: ds.accumulate %arg0 : (tensor<8xbf16>) -> tensor<8xf32>
// CHECK: ds.accumulate %arg0 into %arg1 : (tensor<8xbf16>, tensor<8xf32>) -> tensor<8xf32>
// CHECK: ds.advance %arg2 by 1 : tensor<2xi64>
// CHECK: ds.rank_mean %arg3 : tensor<f32>
func.func @sums(%g: tensor<8xbf16>, %kept: tensor<8xf32>, %rng: tensor<2xi64>, %loss: tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<2xi64>, tensor<f32>) {
  %a = ds.accumulate %g : (tensor<8xbf16>) -> tensor<8xf32>
  %s = ds.accumulate %g into %kept : (tensor<8xbf16>, tensor<8xf32>) -> tensor<8xf32>
  %n = ds.advance %rng by 1 : tensor<2xi64>
  %m = ds.rank_mean %loss : tensor<f32>
  return %a, %s, %n, %m : tensor<8xf32>, tensor<8xf32>, tensor<2xi64>, tensor<f32>
}

// -----

// CHECK: ds.schedule stage 0 [#ds.run<@first, first 0, count 1, gradients set>, #ds.run<@last, first 1, count 1, gradients add, reduced true>]
func.func @first() attributes {ds.segment = #ds.segment<forward, backward>} { return }
func.func @last() attributes {ds.segment = #ds.segment<forward, backward, update>} { return }
ds.schedule stage 0 [#ds.run<@first, first 0, count 1, gradients set>, #ds.run<@last, first 1, count 1, gradients add, reduced true>]

// -----

// A stage of a pipeline with two chunks, and what it runs.
// CHECK: func.func @f() attributes {ds.segment = #ds.segment<stage 1, chunk 1, forward>}
func.func @f() attributes {ds.segment = #ds.segment<stage 1, chunk 1, forward>} { return }
// CHECK: func.func @b() attributes {ds.segment = #ds.segment<stage 1, chunk 1, input_gradient, weight_gradient>}
func.func @b() attributes {ds.segment = #ds.segment<stage 1, chunk 1, input_gradient, weight_gradient>} { return }
func.func @u() attributes {ds.segment = #ds.segment<stage 1, update>} { return }
// CHECK: ds.schedule stage 1 [#ds.run<@f, first 0, count 2, gradients none>, #ds.run<@b, first 0, count 1, gradients set>,
// CHECK-SAME: #ds.run<@b, first 1, count 1, gradients add, reduced true>, #ds.run<@u, first 1, count 1, gradients none>]
ds.schedule stage 1 [#ds.run<@f, first 0, count 2, gradients none>, #ds.run<@b, first 0, count 1, gradients set>,
                     #ds.run<@b, first 1, count 1, gradients add, reduced true>, #ds.run<@u, first 1, count 1, gradients none>]

// -----

func.func @c1(%g: tensor<4xf32>) {
  // expected-error@+1 {{expects a gradient of the shape of 'tensor<8xf32>', but got 'tensor<4xf32>'}}
  %s = ds.accumulate %g : (tensor<4xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @c2(%g: tensor<8xbf16>) {
  // expected-error@+1 {{expects to add to 'tensor<8xf32>', but got 'tensor<8xbf16>'}}
  %s = ds.accumulate %g into %g : (tensor<8xbf16>, tensor<8xbf16>) -> tensor<8xf32>
  return
}

// -----

// expected-error@+1 {{expects work in the order in which it is done, each once, but got forward after backward}}
func.func @order() attributes {ds.segment = #ds.segment<backward, forward>} { return }

// -----

// expected-error@+1 {{expects an evaluation to stand alone}}
func.func @together() attributes {ds.segment = #ds.segment<forward, evaluation>} { return }

// -----

// expected-error@+1 {{expects work of a segment, which recomputing on its own is not}}
func.func @recomputing() attributes {ds.segment = #ds.segment<recompute>} { return }

// -----

// expected-error@+1 {{expects a stage and a chunk that are not negative, but got -1 and 0}}
func.func @negative() attributes {ds.segment = #ds.segment<stage -1, forward>} { return }

// -----

// expected-error@+1 {{expects one of forward, backward, input_gradient, weight_gradient, update, evaluation, recompute, transfer, but got last}}
func.func @older() attributes {ds.segment = #ds.segment<last>} { return }

// -----

// expected-error@+1 {{expects ds.segment to be as #ds.segment<forward, backward>, but got "last"}}
func.func @text() attributes {ds.segment = "last"} { return }

// -----

func.func @silent(%x: tensor<4xf32>) {
  // expected-error@+1 {{expects ds.layer to be as #ds.layer<"h", 0, "attn">, but got "h.0"}}
  %n = ds.neg %x {ds.layer = "h.0"} : tensor<4xf32>
  return
}

// -----

func.func @unnamed(%x: tensor<4xf32>) {
  // expected-error@+1 {{expects a layer to have a name or a number}}
  %n = ds.neg %x {ds.layer = #ds.layer<"">} : tensor<4xf32>
  return
}

// -----

func.func @negative(%x: tensor<4xf32>) {
  // expected-error@+1 {{expects a layer's number that is not negative, but got -1}}
  %n = ds.neg %x {ds.layer = #ds.layer<"h", -1>} : tensor<4xf32>
  return
}

// -----

func.func @unknown(%x: tensor<4xf32>) {
  // expected-error@+1 {{expects ds.work to be as #ds.work<forward>, but got "forward"}}
  %n = ds.neg %x {ds.work = "forward"} : tensor<4xf32>
  return
}

// -----

func.func @e() attributes {ds.segment = #ds.segment<evaluation>} { return }
// expected-error@+1 {{expects segments of stage 0 that are no evaluation, but got @e}}
ds.schedule stage 0 [#ds.run<@e, first 0, count 1, gradients none>]

// -----

func.func @u() attributes {ds.segment = #ds.segment<update>} { return }
// expected-error@+1 {{expects segments of stage 1 that are no evaluation, but got @u}}
ds.schedule stage 1 [#ds.run<@u, first 0, count 1, gradients none>]

// -----

func.func @u() attributes {ds.segment = #ds.segment<update>} { return }
// expected-error@+1 {{expects at least one micro-batch, from one that is not negative, but got #ds.run<@u, first 0, count 0, gradients none>}}
ds.schedule stage 0 [#ds.run<@u, first 0, count 0, gradients none>]

// -----

func.func @m() attributes {ds.segment = #ds.segment<forward, backward, update>} { return }
// expected-error@+1 {{expects gradients set of @m, but got add}}
ds.schedule stage 0 [#ds.run<@m, first 0, count 1, gradients add>]

// -----

func.func @u() attributes {ds.segment = #ds.segment<update>} { return }
// expected-error@+1 {{expects one update, at its end, but got #ds.run<@u, first 1, count 1, gradients none>}}
ds.schedule stage 0 [#ds.run<@u, first 0, count 1, gradients none>, #ds.run<@u, first 1, count 1, gradients none>]

// -----

func.func @m() attributes {ds.segment = #ds.segment<forward, backward>} { return }
// expected-error@+1 {{expects an update at its end, but got none}}
ds.schedule stage 0 [#ds.run<@m, first 0, count 1, gradients set>]
