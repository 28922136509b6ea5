// RUN: ds-opt %s --split-input-file --verify-diagnostics

func.func @attention_c1_head_groups(%q: tensor<2x16x4x8xf32>, %k: tensor<2x16x3x8xf32>) {
  // expected-error@+1 {{'ds.attention' op expects query [B, T, H, D] and key and value [B, S, G, D] with G dividing H, but got 'tensor<2x16x4x8xf32>', 'tensor<2x16x3x8xf32>' and 'tensor<2x16x3x8xf32>'}}
  %o, %l = ds.attention %q, %k, %k scale 1.0 : (tensor<2x16x4x8xf32>, tensor<2x16x3x8xf32>, tensor<2x16x3x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c2_result(%q: tensor<2x16x4x8xf32>) {
  // expected-error@+1 {{'ds.attention' op expects result to be 'tensor<2x16x4x8xf32>', but got 'tensor<2x4x16x8xf32>'}}
  %o, %l = ds.attention %q, %q, %q scale 1.0 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x4x16x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c2_lse(%q: tensor<2x16x4x8xf32>) {
  // expected-error@+1 {{'ds.attention' op expects lse to be 'tensor<2x4x16xf32>', but got 'tensor<2x16x4xf32>'}}
  %o, %l = ds.attention %q, %q, %q scale 1.0 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x4xf32>)
  return
}

// -----

func.func @attention_c3_mask(%q: tensor<2x16x4x8xf32>, %m: tensor<2x2x16x16xf32>) {
  // expected-error@+1 {{'ds.attention' op expects an f32 mask that broadcasts to [2, 4, 16, 16], but got 'tensor<2x2x16x16xf32>'}}
  %o, %l = ds.attention %q, %q, %q mask(%m) scale 1.0 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x2x16x16xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c3_low_mask(%q: tensor<2x16x4x8xbf16>, %m: tensor<2x4x16x16xbf16>) {
  // expected-error@+1 {{'ds.attention' op expects an f32 mask that broadcasts to [2, 4, 16, 16], but got 'tensor<2x4x16x16xbf16>'}}
  %o, %lse = ds.attention %q, %q, %q mask(%m) scale 1.250000e-01 : (tensor<2x16x4x8xbf16>, tensor<2x16x4x8xbf16>, tensor<2x16x4x8xbf16>, tensor<2x4x16x16xbf16>) -> (tensor<2x16x4x8xbf16>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_grad_c1_grad(%q: tensor<2x16x4x8xf32>, %l: tensor<2x4x16xf32>, %g: tensor<2x16x4x4xf32>) {
  // expected-error@+1 {{'ds.attention_grad' op expects grad to be 'tensor<2x16x4x8xf32>', but got 'tensor<2x16x4x4xf32>'}}
  %dq, %dk, %dv = ds.attention_grad %q, %q, %q, %q, %l, %g scale 1.0 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>, tensor<2x16x4x4xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>)
  return
}

// -----

func.func @attention_grad_c2_key_gradient(%q: tensor<2x16x4x8xf32>, %l: tensor<2x4x16xf32>) {
  // expected-error@+1 {{'ds.attention_grad' op expects key gradient to be 'tensor<2x16x4x8xf32>', but got 'tensor<2x16x2x8xf32>'}}
  %dq, %dk, %dv = ds.attention_grad %q, %q, %q, %q, %l, %q scale 1.0 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x2x8xf32>, tensor<2x16x4x8xf32>)
  return
}

// -----

func.func @attention_c4_head_size(%q: tensor<2x16x4x257xf32>) {
  // expected-error@+1 {{'ds.attention' op expects heads of at most 256, but got 257}}
  %o, %lse = ds.attention %q, %q, %q scale 1.0 : (tensor<2x16x4x257xf32>, tensor<2x16x4x257xf32>, tensor<2x16x4x257xf32>) -> (tensor<2x16x4x257xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c5_slopes(%q: tensor<2x16x4x8xf32>, %s: tensor<2xf32>) {
  // expected-error@+1 {{'ds.attention' op expects slopes to be 'tensor<4xf32>', but got 'tensor<2xf32>'}}
  %o, %lse = ds.attention %q, %q, %q slopes(%s) scale 1.0 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c5_low_slopes(%q: tensor<2x16x4x8xf32>, %s: tensor<4xbf16>) {
  // expected-error@+1 {{'ds.attention' op expects slopes to be 'tensor<4xf32>', but got 'tensor<4xbf16>'}}
  %o, %lse = ds.attention %q, %q, %q slopes(%s) scale 1.0 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<4xbf16>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c6_window(%q: tensor<2x16x4x8xf32>) {
  // expected-error@+1 {{'ds.attention' op expects a window of at least 1, but got 0}}
  %o, %lse = ds.attention %q, %q, %q causal window 0 scale 1.0 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c6_cap(%q: tensor<2x16x4x8xf32>) {
  // expected-error@+1 {{'ds.attention' op expects a cap that is positive and finite, but got -2.000000e+00}}
  %o, %lse = ds.attention %q, %q, %q cap -2.0 scale 1.0 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c6_cap_beyond_f32(%q: tensor<2x16x4x8xf32>) {
  // expected-error@+1 {{'ds.attention' op expects a cap that is positive and finite, but got 1.000000e+300}}
  %o, %lse = ds.attention %q, %q, %q cap 1.0e300 scale 1.0 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c7_dropout(%q: tensor<2x16x4x8xf32>, %r: tensor<2xi64>) {
  // expected-error@+1 {{'ds.attention' op expects a dropout of at least 0 and below 1, but got 1.000000e+00}}
  %o, %lse = ds.attention %q, %q, %q scale 1.0 dropout 1.0 id 0(%r) : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2xi64>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c7_generator(%q: tensor<2x16x4x8xf32>, %r: tensor<3xi64>) {
  // expected-error@+1 {{'ds.attention' op expects generator to be 'tensor<2xi64>', but got 'tensor<3xi64>'}}
  %o, %lse = ds.attention %q, %q, %q scale 1.0 dropout 0.5 id 0(%r) : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<3xi64>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c7_without_a_generator(%q: tensor<2x16x4x8xf32>) {
  // expected-error@+1 {{'ds.attention' op expects dropout, its id and its generator together, but got some of them}}
  %o, %lse = "ds.attention"(%q, %q, %q) <{scale = 1.0 : f64, dropout = 0.5 : f64, dropout_id = 0 : i64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0, 0, 0>}> : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_grad_c1_window(%q: tensor<2x16x4x8xf32>, %l: tensor<2x4x16xf32>) {
  // expected-error@+1 {{'ds.attention_grad' op expects a window of at least 1, but got -1}}
  %dq, %dk, %dv = ds.attention_grad %q, %q, %q, %q, %l, %q window -1 scale 1.0 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x4x16xf32>, tensor<2x16x4x8xf32>) -> (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>)
  return
}

// -----

func.func @attention_c8_fewer_heads(%q: tensor<2x16x4x8xf32>, %r: tensor<2xi64>, %h: tensor<i64>) {
  // expected-error@+1 {{'ds.attention' op expects to be some of at least 4 heads, but got 3}}
  %o, %lse = ds.attention %q, %q, %q scale 1.0 dropout 0.5 id 0(%r) heads(%h) of 3 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2xi64>, tensor<i64>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c8_first_head(%q: tensor<2x16x4x8xf32>, %r: tensor<2xi64>, %h: tensor<1xi64>) {
  // expected-error@+1 {{'ds.attention' op expects first head to be 'tensor<i64>', but got 'tensor<1xi64>'}}
  %o, %lse = ds.attention %q, %q, %q scale 1.0 dropout 0.5 id 0(%r) heads(%h) of 8 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2xi64>, tensor<1xi64>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}

// -----

func.func @attention_c8_no_dropout(%q: tensor<2x16x4x8xf32>, %h: tensor<i64>) {
  // expected-error@+1 {{'ds.attention' op expects a first head and heads together, and only with dropout}}
  %o, %lse = ds.attention %q, %q, %q scale 1.0 heads(%h) of 8 : (tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<2x16x4x8xf32>, tensor<i64>) -> (tensor<2x16x4x8xf32>, tensor<2x4x16xf32>)
  return
}
