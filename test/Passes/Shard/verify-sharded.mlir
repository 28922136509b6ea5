// RUN: ds-opt %s --split-input-file --verify-diagnostics --ds-verify-sharded

// What is divided as it should be passes: states have the type of one rank's part.

ds.mesh @mesh axes [dp = 4]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.bucket @k members [@w] offsets [0] elements 128
ds.state @k.parameter role(parameter) bucket(@k) shards [dp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xf32>
func.func @last(%w: tensor<32xf32> {ds.state = @k.parameter}) -> (tensor<32xf32> {ds.state = @k.parameter}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  return %w : tensor<32xf32>
}
ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set>]

// -----

ds.mesh @mesh axes [dp = 4]
// expected-note@+1 {{state @cut is declared here}}
ds.state @cut role(buffer) shards [dp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xf32>
// expected-error@+1 {{expects argument 0 of type 'tensor<32xf32>', but got 'tensor<128xf32>'}}
func.func @last(%w: tensor<128xf32> {ds.state = @cut}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  return
}
ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set>]

// -----

ds.mesh @mesh axes [dp = 4]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-note@+1 {{the bucket is declared here}}
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{expects states in buckets to be read from there, but argument 0 is @w}}
func.func @last(%w: tensor<100xf32> {ds.state = @w}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  return
}
ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set>]

// -----

ds.mesh @mesh axes [dp = 4]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.state @w.m role(moment) slot("m") owner(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-note@+1 {{the bucket is declared here}}
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{expects states in buckets to be read from there, but result 0 is @w.m}}
func.func @last(%x: tensor<100xf32> {ds.input = "x"}) -> (tensor<100xf32> {ds.state = @w.m}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  return %x : tensor<100xf32>
}
ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set>]

// -----

func.func @last(%x: tensor<100xf32> {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  %call = ds.sum_of_squares %x, %x {ds.work = #ds.work<update>} : tensor<100xf32>, tensor<100xf32> -> tensor<f64>
  // expected-error@+2 {{belongs to phase step, but stands in a sharded one}}
  // expected-note@+1 {{--ds-decompose takes its place by simpler ops}}
  %q = ds.sum_of_squares %x {ds.work = #ds.work<update>} : tensor<100xf32> -> tensor<f64>
  return
}
ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set>]

// -----

func.func @last(%x: tensor<100xf32> {ds.input = "x"}) attributes {ds.segment = #ds.segment<forward, backward, update>} {
  // expected-error@+2 {{belongs to phase step, but stands in a sharded one}}
  // expected-note@+1 {{--ds-decompose takes its place by simpler ops}}
  %s = ds.accumulate %x {ds.work = #ds.work<backward>} : (tensor<100xf32>) -> tensor<100xf32>
  return
}
ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set>]

// -----

// What a step must be it must still be.
// expected-error@+1 {{expects a schedule of its segments, but the module has none}}
module {
}
