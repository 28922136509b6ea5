// RUN: ds-opt %s --verify-roundtrip | FileCheck %s

// Every op of the dialect, as its description shows it.

ds.state @wte role(parameter) trainable init(#ds.init<normal, 0.0, 0.02>) home(device) : tensor<100x8xf32>
// CHECK: ds.state @wte role (parameter) trainable init(#ds.init<normal, 0.000000e+00, 2.000000e-02>) home (device) : tensor<100x8xf32>
ds.state @positions role(parameter) init(#ds.init<sinusoid, 10000.0, 0.0>) home(device) : tensor<1500x384xf32>
// CHECK: ds.state @positions role (parameter) init(#ds.init<sinusoid, 1.000000e+04, 0.000000e+00>) home (device) : tensor<1500x384xf32>
// CHECK: ds.files unused ["lm_head.weight"] converts config "{\22model_type\22: \22gpt2\22}"
ds.files unused ["lm_head.weight"] converts config "{\22model_type\22: \22gpt2\22}"
ds.state @wte.exp_avg role(moment) slot("exp_avg") owner(@wte) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100x8xf32>
ds.state @head role(parameter) aliases ["lm_head.weight"] init(#ds.init<required, 0.0, 0.0>) home(host) : tensor<8xf32>

// CHECK-LABEL: @unary
func.func @unary(%x: tensor<4xf32>, %c: tensor<4xi1>) {
  // CHECK: ds.neg %{{.*}} : tensor<4xf32>
  %neg = ds.neg %x : tensor<4xf32>
  // CHECK: ds.abs %{{.*}} : tensor<4xf32>
  %abs = ds.abs %x : tensor<4xf32>
  // CHECK: ds.sign %{{.*}} : tensor<4xf32>
  %sign = ds.sign %x : tensor<4xf32>
  // CHECK: ds.exp %{{.*}} : tensor<4xf32>
  %exp = ds.exp %x : tensor<4xf32>
  // CHECK: ds.log %{{.*}} : tensor<4xf32>
  %log = ds.log %x : tensor<4xf32>
  // CHECK: ds.sqrt %{{.*}} : tensor<4xf32>
  %sqrt = ds.sqrt %x : tensor<4xf32>
  // CHECK: ds.rsqrt %{{.*}} : tensor<4xf32>
  %rsqrt = ds.rsqrt %x : tensor<4xf32>
  // CHECK: ds.tanh %{{.*}} : tensor<4xf32>
  %tanh = ds.tanh %x : tensor<4xf32>
  // CHECK: ds.erf %{{.*}} : tensor<4xf32>
  %erf = ds.erf %x : tensor<4xf32>
  // CHECK: ds.sigmoid %{{.*}} : tensor<4xf32>
  %sigmoid = ds.sigmoid %x : tensor<4xf32>
  // CHECK: ds.gelu tanh %{{.*}} : tensor<4xf32>
  %gelu = ds.gelu tanh %x : tensor<4xf32>
  // CHECK: ds.gelu %{{.*}} : tensor<4xf32>
  %exact = ds.gelu %x : tensor<4xf32>
  // CHECK: ds.sin %{{.*}} : tensor<4xf32>
  %sin = ds.sin %x : tensor<4xf32>
  // CHECK: ds.cos %{{.*}} : tensor<4xf32>
  %cos = ds.cos %x : tensor<4xf32>
  // CHECK: ds.floor %{{.*}} : tensor<4xf32>
  %floor = ds.floor %x : tensor<4xf32>
  // CHECK: ds.not
  %not = ds.not %c : tensor<4xi1>
  return
}

// CHECK-LABEL: @binary
func.func @binary(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xi1>, %d: tensor<4xi1>, %i: tensor<4xi64>, %j: tensor<4xi64>) {
  // CHECK: ds.gelu_grad tanh %{{.*}}, %{{.*}} : tensor<4xf32>
  %gelu = ds.gelu_grad tanh %a, %b : tensor<4xf32>
  // CHECK: ds.add %{{.*}}, %{{.*}} : tensor<4xf32>
  %add = ds.add %a, %b : tensor<4xf32>
  // CHECK: ds.sub %{{.*}}, %{{.*}} : tensor<4xf32>
  %sub = ds.sub %a, %b : tensor<4xf32>
  // CHECK: ds.mul %{{.*}}, %{{.*}} : tensor<4xf32>
  %mul = ds.mul %a, %b : tensor<4xf32>
  // CHECK: ds.div %{{.*}}, %{{.*}} : tensor<4xf32>
  %div = ds.div %a, %b : tensor<4xf32>
  // CHECK: ds.max %{{.*}}, %{{.*}} : tensor<4xf32>
  %max = ds.max %a, %b : tensor<4xf32>
  // CHECK: ds.min %{{.*}}, %{{.*}} : tensor<4xf32>
  %min = ds.min %a, %b : tensor<4xf32>
  // CHECK: ds.pow %{{.*}}, %{{.*}} : tensor<4xf32>
  %pow = ds.pow %a, %b : tensor<4xf32>
  // CHECK: ds.and
  %and = ds.and %c, %d : tensor<4xi1>
  // CHECK: ds.or
  %or = ds.or %c, %d : tensor<4xi1>
  // CHECK: ds.compare lt %{{.*}}, %{{.*}} : tensor<4xi64>
  %lt = ds.compare lt %i, %j : tensor<4xi64>
  // CHECK: ds.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<4xf32>
  %sel = ds.select %lt, %a, %b : tensor<4xf32>
  // CHECK: ds.convert %{{.*}} : tensor<4xi64> -> tensor<4xf32>
  %cv = ds.convert %i : tensor<4xi64> -> tensor<4xf32>
  return
}

// CHECK-LABEL: @shape
func.func @shape(%x: tensor<4x8xf32>, %v: tensor<8xf32>, %p: tensor<2x8xf32>, %q: tensor<3x8xf32>, %w: tensor<4x4xf32>, %rng: tensor<2xi64>) {
  // CHECK: ds.constant dense<1.000000e+00> : tensor<4xf32>
  %c = ds.constant dense<1.0> : tensor<4xf32>
  // CHECK: ds.iota dim 1 start 0 step 1 : tensor<4x8xi64>
  %i = ds.iota dim 1 start 0 step 1 : tensor<4x8xi64>
  // CHECK: ds.random_uniform %{{.*}} id 3 first 0 : tensor<2xi64> -> tensor<4x8xf32>
  %u = ds.random_uniform %rng id 3 first 0 : tensor<2xi64> -> tensor<4x8xf32>
  %n = ds.iota dim 1 start 0 step 1 : tensor<4x8xi64>
  // CHECK: ds.random_uniform %{{.*}} id 3 first 0 numbers(%{{.*}}) : tensor<2xi64>, tensor<4x8xi64> -> tensor<4x8xf32>
  %drawn = ds.random_uniform %rng id 3 first 0 numbers(%n) : tensor<2xi64>, tensor<4x8xi64> -> tensor<4x8xf32>
  // CHECK: ds.broadcast %{{.*}} dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  %b = ds.broadcast %v dims [1] : tensor<8xf32> -> tensor<4x8xf32>
  // CHECK: ds.reshape %{{.*}} : tensor<4x8xf32> -> tensor<32xf32>
  %r = ds.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  // CHECK: ds.transpose %{{.*}} perm [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  %t = ds.transpose %x perm [1, 0] : tensor<4x8xf32> -> tensor<8x4xf32>
  // CHECK: ds.slice %{{.*}} offsets [0, 4] strides [1, 1] : tensor<4x8xf32> -> tensor<4x4xf32>
  %s = ds.slice %x offsets [0, 4] strides [1, 1] : tensor<4x8xf32> -> tensor<4x4xf32>
  // CHECK: ds.pad %{{.*}} offsets [0, 4] strides [1, 1] : tensor<4x4xf32> -> tensor<4x8xf32>
  %pad = ds.pad %w offsets [0, 4] strides [1, 1] : tensor<4x4xf32> -> tensor<4x8xf32>
  // CHECK: ds.concat %{{.*}}, %{{.*}} dim 0 : tensor<2x8xf32>, tensor<3x8xf32> -> tensor<5x8xf32>
  %cat = ds.concat %p, %q dim 0 : tensor<2x8xf32>, tensor<3x8xf32> -> tensor<5x8xf32>
  // CHECK: ds.split %{{.*}} dim 1 : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x6xf32>
  %sp:2 = ds.split %x dim 1 : tensor<4x8xf32> -> tensor<4x2xf32>, tensor<4x6xf32>
  // CHECK: ds.reduce sum %{{.*}} dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  %red = ds.reduce sum %x dims [1] : tensor<4x8xf32> -> tensor<4xf32>
  return
}

// CHECK-LABEL: @network
func.func @network(%a: tensor<4x8xf32>, %b: tensor<6x8xf32>, %c: tensor<6xf32>, %acc: tensor<4x6xf32>, %w: tensor<8xf32>, %v: tensor<8xf32>,
                   %table: tensor<100x8xf32>, %ids: tensor<2x16xi64>, %g: tensor<2x16x8xf32>, %t: tensor<4xi64>, %rng: tensor<2xi64>) {
  // CHECK: ds.matmul %{{.*}}, %{{.*}} bias(%{{.*}}) transpose_rhs : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6xf32> -> tensor<4x6xf32>
  %m = ds.matmul %a, %b bias(%c) transpose_rhs : tensor<4x8xf32>, tensor<6x8xf32>, tensor<6xf32> -> tensor<4x6xf32>
  // CHECK: ds.matmul %{{.*}}, %{{.*}} into(%{{.*}}) transpose_rhs epilogue(relu) : tensor<4x8xf32>, tensor<6x8xf32> into tensor<4x6xf32> -> tensor<4x6xf32>
  %n = ds.matmul %a, %b into(%acc) transpose_rhs epilogue(relu) : tensor<4x8xf32>, tensor<6x8xf32> into tensor<4x6xf32> -> tensor<4x6xf32>
  // CHECK: ds.softmax %{{.*}} dim 1 : tensor<4x8xf32>
  %s = ds.softmax %a dim 1 : tensor<4x8xf32>
  // CHECK: ds.softmax log %{{.*}} dim 1 : tensor<4x8xf32>
  %ls = ds.softmax log %a dim 1 : tensor<4x8xf32>
  // CHECK: ds.layer_norm %{{.*}} weight(%{{.*}}) bias(%{{.*}}) over 1 epsilon 1.000000e-05 :
  %ln, %mean, %rstd = ds.layer_norm %a weight(%w) bias(%v) over 1 epsilon 1.000000e-05 : tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32> -> tensor<4x8xf32>, tensor<4xf32>, tensor<4xf32>
  // CHECK: ds.rms_norm %{{.*}} weight(%{{.*}}) over 1 epsilon
  %rn, %rr = ds.rms_norm %a weight(%w) over 1 epsilon 9.9999999999999995E-7 : tensor<4x8xf32>, tensor<8xf32> -> tensor<4x8xf32>, tensor<4xf32>
  // CHECK: ds.embedding %{{.*}}, %{{.*}} : tensor<100x8xf32>, tensor<2x16xi64> -> tensor<2x16x8xf32>
  %e = ds.embedding %table, %ids : tensor<100x8xf32>, tensor<2x16xi64> -> tensor<2x16x8xf32>
  // CHECK: ds.embedding part %{{.*}}, %{{.*}} : tensor<100x8xf32>, tensor<2x16xi64> -> tensor<2x16x8xf32>
  %rows = ds.embedding part %table, %ids : tensor<100x8xf32>, tensor<2x16xi64> -> tensor<2x16x8xf32>
  // CHECK: ds.embedding %{{.*}}, %{{.*}} padding_index 1 : tensor<100x8xf32>, tensor<2x16xi64> -> tensor<2x16x8xf32>
  %padded = ds.embedding %table, %ids padding_index 1 : tensor<100x8xf32>, tensor<2x16xi64> -> tensor<2x16x8xf32>
  // CHECK: ds.embedding_grad %{{.*}}, %{{.*}} : tensor<2x16xi64>, tensor<2x16x8xf32> -> tensor<100x8xf32>
  %d = ds.embedding_grad %ids, %g : tensor<2x16xi64>, tensor<2x16x8xf32> -> tensor<100x8xf32>
  // CHECK: ds.cross_entropy %{{.*}}, %{{.*}} ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %loss, %lse, %count = ds.cross_entropy %a, %t ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  // CHECK: ds.cross_entropy %{{.*}}, %{{.*}} over(%{{.*}}) ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  %part, %plse, %pcount = ds.cross_entropy %a, %t over(%count) ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  // CHECK: ds.cross_entropy_grad
  %dl = ds.cross_entropy_grad %a, %t, %lse, %count, %loss ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x8xf32>
  // CHECK: ds.cross_entropy %{{.*}}, %{{.*}} ignore_index -100 cap 3.000000e+01 :
  %closs, %clse, %ccount = ds.cross_entropy %a, %t ignore_index -100 cap 30.0 : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>, tensor<f32>)
  // CHECK: ds.cross_entropy_grad {{.*}} ignore_index -100 cap 3.000000e+01 :
  %cdl = ds.cross_entropy_grad %a, %t, %clse, %ccount, %closs ignore_index -100 cap 30.0 : (tensor<4x8xf32>, tensor<4xi64>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4x8xf32>
  // CHECK: ds.cross_entropy_with_grad %{{.*}}, %{{.*}}, %{{.*}} ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>)
  %bl, %bc, %bd = ds.cross_entropy_with_grad %a, %t, %loss ignore_index -100 : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>)
  // CHECK: ds.cross_entropy_with_grad %{{.*}}, %{{.*}}, %{{.*}} over(%{{.*}}) ignore_index -100 cap 3.000000e+01 :
  %bl2, %bc2, %bd2 = ds.cross_entropy_with_grad %a, %t, %loss over(%count) ignore_index -100 cap 30.0 : (tensor<4x8xf32>, tensor<4xi64>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<4x8xf32>)
  // CHECK: ds.dropout %{{.*}}, %{{.*}} probability 1.000000e-01 id 3 : tensor<4x8xf32>, tensor<2xi64>
  %dr = ds.dropout %a, %rng probability 1.000000e-01 id 3 : tensor<4x8xf32>, tensor<2xi64>
  return
}

// CHECK-LABEL: @attention
func.func @attention(%do: tensor<2x16x4x8xf32>, %q: tensor<2x16x4x8xf32>, %k: tensor<2x16x2x8xf32>, %v: tensor<2x16x2x8xf32>, %mask: tensor<1x1x16x16xf32>, %slopes: tensor<4xf32>, %rng: tensor<2xi64>) {
  // CHECK: ds.attention %{{.*}}, %{{.*}}, %{{.*}} causal scale 1.250000e-01 :
  %o, %lse = ds.attention %q, %k, %v causal scale 1.250000e-01 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  // CHECK: ds.attention %{{.*}}, %{{.*}}, %{{.*}} mask(%{{.*}}) scale 1.250000e-01 :
  %o2, %lse2 = ds.attention %q, %k, %v mask(%mask) scale 1.250000e-01 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<1x1x16x16xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  // CHECK: ds.attention %{{.*}}, %{{.*}}, %{{.*}} causal window 5 scale 1.250000e-01 :
  %o3, %lse3 = ds.attention %q, %k, %v causal window 5 scale 1.250000e-01 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  // CHECK: ds.attention %{{.*}}, %{{.*}}, %{{.*}} cap 5.000000e+01 scale 1.250000e-01 :
  %o4, %lse4 = ds.attention %q, %k, %v cap 50.0 scale 1.250000e-01 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  // CHECK: ds.attention %{{.*}}, %{{.*}}, %{{.*}} mask(%[[MASK:.*]]) slopes(%[[SLOPES:.*]]) causal window 5 cap 5.000000e+01 scale 1.250000e-01 :
  %o5, %lse5 = ds.attention %q, %k, %v mask(%mask) slopes(%slopes) causal window 5 cap 50.0 scale 1.250000e-01 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<1x1x16x16xf32>, tensor<4xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  // CHECK: ds.attention_grad {{.*}} mask(%[[MASK]]) slopes(%[[SLOPES]]) causal window 5 cap 5.000000e+01 scale 1.250000e-01 :
  %dq5, %dk5, %dv5 = ds.attention_grad %q, %k, %v, %o5, %lse5, %do mask(%mask) slopes(%slopes) causal window 5 cap 50.0 scale 1.250000e-01 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>, tensor<2x16x4x8xf32>, tensor<1x1x16x16xf32>, tensor<4xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>)
  // CHECK: ds.attention {{.*}} slopes(%[[SLOPES]]) causal scale 1.250000e-01 dropout 1.000000e-01 id 3(%[[RNG:.*]]) :
  %o6, %lse6 = ds.attention %q, %k, %v slopes(%slopes) causal scale 1.250000e-01 dropout 0.1 id 3(%rng) : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<4xf32>, tensor<2xi64>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  // CHECK: ds.attention_grad {{.*}} causal scale 1.250000e-01 dropout 1.000000e-01 id 3(%[[RNG]]) :
  %dq6, %dk6, %dv6 = ds.attention_grad %q, %k, %v, %o6, %lse6, %do slopes(%slopes) causal scale 1.250000e-01 dropout 0.1 id 3(%rng) : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>, tensor<2x16x4x8xf32>, tensor<4xf32>, tensor<2xi64>) -> (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>)
  %h = ds.constant dense<4> : tensor<i64>
  // CHECK: ds.attention {{.*}} dropout 1.000000e-01 id 3(%[[RNG]]) heads(%[[FIRST:.*]]) of 12 :
  %o7, %lse7 = ds.attention %q, %k, %v causal scale 1.250000e-01 dropout 0.1 id 3(%rng) heads(%h) of 12 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2xi64>, tensor<i64>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  // CHECK: ds.attention_grad {{.*}} dropout 1.000000e-01 id 3(%[[RNG]]) heads(%[[FIRST]]) of 12 :
  %dq7, %dk7, %dv7 = ds.attention_grad %q, %k, %v, %o7, %lse7, %do causal scale 1.250000e-01 dropout 0.1 id 3(%rng) heads(%h) of 12 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>, tensor<2x16x4x8xf32>, tensor<2xi64>, tensor<i64>) -> (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>)
  // CHECK: ds.attention_grad
  %dq, %dk, %dv = ds.attention_grad %q, %k, %v, %o, %lse, %do causal scale 1.250000e-01 : (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x2x8xf32>)
  return
}

// What products do with their sums: GELU, whose input is stored or not, and its gradient.
// CHECK-LABEL: @epilogues
func.func @epilogues(%a: tensor<4x8xbf16>, %b: tensor<6x8xbf16>, %c: tensor<6xbf16>, %v: tensor<8x6xbf16>) {
  // CHECK-NEXT: ds.matmul %arg0, %arg1 bias(%arg2) transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16>, tensor<6xbf16> -> tensor<4x6xbf16>
  %r = ds.matmul %a, %b bias(%c) transpose_rhs epilogue(none) : tensor<4x8xbf16>, tensor<6x8xbf16>, tensor<6xbf16> -> tensor<4x6xbf16>
  // CHECK-NEXT: %{{.*}}, %[[H:.*]] = ds.matmul %arg0, %arg1 bias(%arg2) transpose_rhs epilogue(gelu) : tensor<4x8xbf16>, tensor<6x8xbf16>, tensor<6xbf16> -> tensor<4x6xbf16>, tensor<4x6xbf16>
  %g, %h = ds.matmul %a, %b bias(%c) transpose_rhs epilogue(gelu) : tensor<4x8xbf16>, tensor<6x8xbf16>, tensor<6xbf16> -> tensor<4x6xbf16>, tensor<4x6xbf16>
  // CHECK-NEXT: ds.matmul %arg0, %arg1 input(%[[H]]) transpose_rhs epilogue(gelu_gradient) : tensor<4x8xbf16>, tensor<6x8xbf16> input tensor<4x6xbf16> -> tensor<4x6xbf16>
  %d = ds.matmul %a, %b input(%h) transpose_rhs epilogue(gelu_gradient) : tensor<4x8xbf16>, tensor<6x8xbf16> input tensor<4x6xbf16> -> tensor<4x6xbf16>
  // CHECK-NEXT: ds.matmul %arg0, %arg3 epilogue(gelu) : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xbf16>
  %only = ds.matmul %a, %v epilogue(gelu) : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xbf16>
  // CHECK-NEXT: ds.matmul %arg0, %arg3 epilogue(relu) : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xf32>
  %unrounded = ds.matmul %a, %v epilogue(relu) : tensor<4x8xbf16>, tensor<8x6xbf16> -> tensor<4x6xf32>
  return
}

// CHECK-LABEL: @conv
func.func @conv(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %b: tensor<4xf32>, %g: tensor<2x4x4x4xf32>) {
  // CHECK: ds.conv %{{.*}}, %{{.*}} bias(%{{.*}}) stride [2, 2] padding [1, 1] dilation [1, 1] groups 1 :
  %r = ds.conv %x, %w bias(%b) stride [2, 2] padding [1, 1] dilation [1, 1] groups 1 : tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>, tensor<4xf32> -> tensor<2x4x4x4xf32>
  // CHECK: ds.conv_grad_input
  %dx = ds.conv_grad_input %w, %g stride [2, 2] padding [1, 1] dilation [1, 1] groups 1 : tensor<4x3x3x3xf32>, tensor<2x4x4x4xf32> -> tensor<2x3x8x8xf32>
  // CHECK: ds.conv_grad_weight
  %dw = ds.conv_grad_weight %x, %g stride [2, 2] padding [1, 1] dilation [1, 1] groups 1 : tensor<2x3x8x8xf32>, tensor<2x4x4x4xf32> -> tensor<4x3x3x3xf32>
  return
}

// One and three dimensions, in 16 bits; each channel by itself.
// CHECK-LABEL: @conv_dimensions
func.func @conv_dimensions(%x: tensor<2x6x9xbf16>, %w: tensor<6x1x3xbf16>, %y: tensor<1x4x2x3x4xf16>, %v: tensor<2x2x1x2x2xf16>) {
  // 9 - 2 * (3 - 1) = 5
  // CHECK: ds.conv %{{.*}}, %{{.*}} stride [1] padding [0] dilation [2] groups 6 :
  %r = ds.conv %x, %w stride [1] padding [0] dilation [2] groups 6 : tensor<2x6x9xbf16>, tensor<6x1x3xbf16> -> tensor<2x6x5xbf16>
  // CHECK: ds.conv %{{.*}}, %{{.*}} stride [1, 1, 1] padding [0, 0, 0] dilation [1, 1, 1] groups 2 :
  %s = ds.conv %y, %v stride [1, 1, 1] padding [0, 0, 0] dilation [1, 1, 1] groups 2 : tensor<1x4x2x3x4xf16>, tensor<2x2x1x2x2xf16> -> tensor<1x2x2x2x3xf16>
  return
}

// CHECK-LABEL: @fused
func.func @fused(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: ds.fused(%{{.*}}, %{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  %r = ds.fused (%a, %b) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: tensor<4xf32>, %y: tensor<4xf32>):
    %s = ds.add %x, %y : tensor<4xf32>
    // CHECK: ds.yield %{{.*}} : tensor<4xf32>
    ds.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// CHECK-LABEL: @update
func.func @update(%w: tensor<8xf32>, %g: tensor<8xf32>, %rate: tensor<f32>) -> (tensor<8xf32>, tensor<f64>) {
  // CHECK: ds.update @head states(%{{.*}}) gradient(%{{.*}}) scalars(%{{.*}}) : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32> {
  %new = ds.update @head states(%w) gradient(%g) scalars(%rate) : (tensor<8xf32>, tensor<8xf32>, tensor<f32>) -> tensor<8xf32> {
  ^bb0(%old: tensor<8xf32>, %gradient: tensor<8xf32>, %r: tensor<f32>):
    %rates = ds.broadcast %r dims [] : tensor<f32> -> tensor<8xf32>
    %step = ds.mul %gradient, %rates : tensor<8xf32>
    %next = ds.sub %old, %step : tensor<8xf32>
    ds.yield %next : tensor<8xf32>
  }
  // CHECK: ds.sum_of_squares %{{.*}} : tensor<8xf32> -> tensor<f64>
  %s = ds.sum_of_squares %g : tensor<8xf32> -> tensor<f64>
  return %new, %s : tensor<8xf32>, tensor<f64>
}

// CHECK-LABEL: @presume
func.func @presume(%factor: tensor<f32>, %one: tensor<f32>, %wrong: tensor<i1>) -> tensor<f32> {
  // CHECK: ds.presume %{{.*}} as %{{.*}} unless %{{.*}} : tensor<f32>, tensor<i1>
  %p = ds.presume %factor as %one unless %wrong : tensor<f32>, tensor<i1>
  return %p : tensor<f32>
}

// CHECK-LABEL: @sum_of_squares
func.func @sum_of_squares(%x: tensor<8xf32>, %y: tensor<4x4xbf16>) -> tensor<f64> {
  // CHECK: ds.sum_of_squares %{{.*}}, %{{.*}} : tensor<8xf32>, tensor<4x4xbf16> -> tensor<f64>
  %s = ds.sum_of_squares %x, %y : tensor<8xf32>, tensor<4x4xbf16> -> tensor<f64>
  return %s : tensor<f64>
}

// CHECK-LABEL: ds.kernel @kernel_0 inputs 1 buffers
ds.kernel @kernel_0 inputs 1 buffers [!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>] {
^bb0(%x: tensor<4xf32>):
  %s = ds.exp %x : tensor<4xf32>
  ds.yield %s : tensor<4xf32>
}

ds.kernel @any inputs 1 buffers [!ds.buffer<tensor<?xf32>, [1], device>, !ds.buffer<tensor<?xf32>, [1], device>] items 2 {
^bb0(%x: tensor<?xf32>):
  %s = ds.exp %x : tensor<?xf32>
  ds.yield %s : tensor<?xf32>
}

ds.kernel @ones inputs 0 buffers [!ds.buffer<tensor<4xf32>, [1], device>] {
  %s = ds.constant dense<1.0> : tensor<4xf32>
  ds.yield %s : tensor<4xf32>
}

ds.kernel @both inputs 1 buffers [!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>] {
^bb0(%x: tensor<4xf32>):
  %s = ds.exp %x : tensor<4xf32>
  ds.yield %s, %x : tensor<4xf32>, tensor<4xf32>
}

ds.kernel @kernel_1 inputs 1 buffers [!ds.buffer<tensor<4xf32>, [1], host>, !ds.buffer<tensor<4xf32>, [1], host>] {
^bb0(%x: tensor<4xf32>):
  %s = ds.exp %x : tensor<4xf32>
  ds.yield %s : tensor<4xf32>
}

// CHECK-LABEL: @predicated
func.func @predicated(%a: !ds.buffer<tensor<4xf32>, [1], host>, %b: !ds.buffer<tensor<4xf32>, [1], host>, %c: !ds.buffer<tensor<f32>, [], host>,
                      %g: !ds.buffer<tensor<f32>, [], host>, %p: !ds.buffer<tensor<i1>, [], host>, %w: !ds.buffer<tensor<i1>, [], host>) {
  // CHECK: ds.presumed %{{.*}} as %{{.*}} unless %{{.*}} : !ds.buffer<tensor<f32>, [], host>, !ds.buffer<tensor<i1>, [], host>
  ds.presumed %c as %g unless %w : !ds.buffer<tensor<f32>, [], host>, !ds.buffer<tensor<i1>, [], host>
  // CHECK: ds.launch @kernel_1 ins(%{{.*}}) outs(%{{.*}}) when(%{{.*}} : !ds.buffer<tensor<i1>, [], host>) on host :
  ds.launch @kernel_1 ins(%a) outs(%b) when(%p : !ds.buffer<tensor<i1>, [], host>) on host : (!ds.buffer<tensor<4xf32>, [1], host>) -> !ds.buffer<tensor<4xf32>, [1], host>
  // CHECK: ds.launch @kernel_1 ins(%{{.*}}) outs(%{{.*}}) on host speculative :
  ds.launch @kernel_1 ins(%a) outs(%b) on host speculative : (!ds.buffer<tensor<4xf32>, [1], host>) -> !ds.buffer<tensor<4xf32>, [1], host>
  // CHECK: ds.call copy(%{{.*}}, %{{.*}}) writes [1] params [] on host measured 1.250000e-01 speculative :
  ds.call copy(%a, %b) writes [1] params [] on host measured 1.250000e-01 speculative : !ds.buffer<tensor<4xf32>, [1], host>, !ds.buffer<tensor<4xf32>, [1], host>
  return
}

// CHECK-LABEL: @buffers
func.func @buffers(%a: !ds.buffer<tensor<4xf32>, [1], device>) {
  // CHECK: ds.alloc activations : !ds.buffer<tensor<4x8xf32>, [8, 1], device>
  %b = ds.alloc activations : !ds.buffer<tensor<4x8xf32>, [8, 1], device>
  // CHECK: ds.alloc activations offset 128 : !ds.buffer<tensor<4xf32>, [1], device>
  %c = ds.alloc activations offset 128 : !ds.buffer<tensor<4xf32>, [1], device>
  // CHECK: ds.view %{{.*}} offset 4 :
  %v = ds.view %b offset 4 : !ds.buffer<tensor<4x8xf32>, [8, 1], device> -> !ds.buffer<tensor<4x4xf32>, [8, 1], device>
  // CHECK: ds.alloc workspace offset 4096 alignment 256 : !ds.buffer<tensor<512xi8>, [1], device>
  %w = ds.alloc workspace offset 4096 alignment 256 : !ds.buffer<tensor<512xi8>, [1], device>
  // CHECK: ds.launch @kernel_0 ins(%{{.*}}) outs(%{{.*}}) on compute :
  ds.launch @kernel_0 ins(%a) outs(%c) on compute : (!ds.buffer<tensor<4xf32>, [1], device>) -> !ds.buffer<tensor<4xf32>, [1], device>
  // CHECK: ds.launch @any ins(%{{.*}}) outs(%{{.*}}) extent 4 on compute :
  ds.launch @any ins(%a) outs(%c) extent 4 on compute : (!ds.buffer<tensor<4xf32>, [1], device>) -> (!ds.buffer<tensor<4xf32>, [1], device>)
  %d = ds.alloc activations : !ds.buffer<tensor<8xf32>, [1], device>
  %e = ds.alloc activations : !ds.buffer<tensor<8xf32>, [1], device>
  // CHECK: ds.launch @any ins(%{{.*}}, %{{.*}}) outs(%{{.*}}, %{{.*}}) extent 4, 8 on compute :
  ds.launch @any ins(%a, %d) outs(%c, %e) extent 4, 8 on compute : (!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<8xf32>, [1], device>) -> (!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<8xf32>, [1], device>)
  // A kernel of constants reads nothing; one that reads and makes several.
  // CHECK: ds.launch @ones ins() outs(%{{.*}}) on compute : () -> !ds.buffer
  ds.launch @ones ins() outs(%c) on compute : () -> !ds.buffer<tensor<4xf32>, [1], device>
  // CHECK: ds.launch @both ins(%{{.*}}) outs(%{{.*}}, %{{.*}}) on compute : ({{.*}}) -> ({{.*}}, {{.*}})
  ds.launch @both ins(%a) outs(%c, %a) on compute : (!ds.buffer<tensor<4xf32>, [1], device>) -> (!ds.buffer<tensor<4xf32>, [1], device>, !ds.buffer<tensor<4xf32>, [1], device>)
  // CHECK: ds.call fill(%{{.*}}) writes [0] params [0.000000e+00] on compute :
  ds.call fill(%c) writes [0] params [0.0 : f64] on compute : !ds.buffer<tensor<4xf32>, [1], device>
  return
}

// Sixteen bits: sums are f32, and so may be what they give.
// CHECK-LABEL: @low_precision
func.func @low_precision(%a: tensor<4x8xbf16>, %b: tensor<6x8xbf16>, %c: tensor<6xbf16>, %acc: tensor<4x6xf32>, %ids: tensor<2x16xi64>, %g: tensor<2x16x8xf16>) {
  // CHECK: ds.matmul %{{.*}}, %{{.*}} bias(%{{.*}}) transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16>, tensor<6xbf16> -> tensor<4x6xbf16>
  %m = ds.matmul %a, %b bias(%c) transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16>, tensor<6xbf16> -> tensor<4x6xbf16>
  // CHECK: ds.matmul %{{.*}}, %{{.*}} into(%{{.*}}) transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16> into tensor<4x6xf32> -> tensor<4x6xf32>
  %n = ds.matmul %a, %b into(%acc) transpose_rhs : tensor<4x8xbf16>, tensor<6x8xbf16> into tensor<4x6xf32> -> tensor<4x6xf32>
  // CHECK: ds.embedding_grad %{{.*}}, %{{.*}} : tensor<2x16xi64>, tensor<2x16x8xf16> -> tensor<100x8xf32>
  %d = ds.embedding_grad %ids, %g : tensor<2x16xi64>, tensor<2x16x8xf16> -> tensor<100x8xf32>
  return
}
