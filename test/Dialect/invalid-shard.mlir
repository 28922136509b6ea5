// RUN: ds-opt %s --split-input-file --verify-diagnostics

// Meshes, buckets and sharded states: one case per constraint.

// expected-error@+1 {{'ds.mesh' op expects a size of at least 1 for axis tp, but got 0}}
ds.mesh @mesh_c1_empty_axis axes [dp = 4, tp = 0, pp = 1, sp = 1]

// -----

// expected-error@+1 {{'ds.mesh' op expects 4 sizes, but got 2}}
"ds.mesh"() <{sym_name = "mesh_of_two_axes", sizes = array<i64: 1, 2>}> : () -> ()

// -----

// expected-note@+1 {{the first is here}}
ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
// expected-error@+1 {{'ds.mesh' op expects to be the only mesh of its module, but got a second}}
ds.mesh @mesh_c2_second axes [dp = 4, tp = 1, pp = 1, sp = 1]

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects members that are parameters, but got @nothing}}
ds.bucket @bucket_c1_unknown_member members [@nothing] offsets [0] elements 128

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @b role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects members that are parameters, but got @b}}
ds.bucket @bucket_c1_buffer members [@b] offsets [0] elements 128

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-note@+1 {{member @v is declared here}}
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xbf16>
// expected-error@+1 {{'ds.bucket' op expects members of 'f32', but got 'bf16'}}
ds.bucket @bucket_c1_two_types members [@w, @v] offsets [0, 128] elements 256

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects each parameter in one bucket at most, but got @w twice}}
ds.bucket @bucket_c1_member_twice members [@w, @w] offsets [0, 128] elements 256

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-note@+1 {{it is a member of this one too}}
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.bucket' op expects each parameter in one bucket at most, but got @w}}
ds.bucket @bucket_c1_member_of_two members [@w] offsets [0] elements 128

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects 2 offsets, one per member, but got 1}}
ds.bucket @bucket_c2_one_offset members [@w, @v] offsets [0] elements 256

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects offsets that are multiples of 32, but got 100}}
ds.bucket @bucket_c2_crooked_offset members [@w, @v] offsets [0, 100] elements 256

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects offsets that are multiples of 32, but got -32}}
ds.bucket @bucket_c2_negative_offset members [@w] offsets [-32] elements 128

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects members that do not overlap, but got one of 100 elements at 0 before one at 96}}
ds.bucket @bucket_c2_overlap members [@w, @v] offsets [0, 96] elements 256

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects members inside 128 elements, but got one of 100 at 128}}
ds.bucket @bucket_c2_outside members [@w, @v] offsets [0, 128] elements 128

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects a positive multiple of 128 elements, but got 160}}
ds.bucket @bucket_c3_uneven members [@w] offsets [0] elements 160

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects an owner exactly for gradients, moments and masters without a bucket, but got role moment with one}}
ds.state @state_c1_both role(moment) slot("state_c1_both") owner(@w) bucket(@k) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xf32>

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects a state with a bucket to be an untrained parameter, gradient, moment or master without aliases, but got role parameter}}
ds.state @state_c2_trained_bucket role(parameter) trainable bucket(@k) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xf32>

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects a state with a bucket to be an untrained parameter, gradient, moment or master without aliases, but got role scalar}}
ds.state @state_c3_scalar_bucket role(scalar) bucket(@k) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xf32>

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects a bucket, but got @w}}
ds.state @state_c3_no_bucket role(moment) slot("state_c3_no_bucket") bucket(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xf32>

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-note@+1 {{bucket @k is declared here}}
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects 128 elements, but got 'tensor<64xf32>'}}
ds.state @state_c3_short role(moment) slot("state_c3_short") bucket(@k) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xf32>

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects the members' element type 'f32', but got 'bf16'}}
ds.state @state_c3_other_type role(parameter) bucket(@k) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xbf16>

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects one entry in shards per dimension of 'tensor<128xf32>', but got 2}}
ds.state @state_c4_entries role(moment) slot("state_c4_entries") bucket(@k) shards [dp, none] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xf32>

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects each axis once in shards, but got dp twice}}
ds.state @state_c4_twice role(buffer) shards [dp, dp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128x128xf32>

// -----

ds.mesh @mesh axes [dp = 4, tp = 1, pp = 2, sp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects 4 ranks to divide dimension 1, but got 'tensor<8x6xf32>'}}
ds.state @state_c4_uneven role(buffer) shards [none, dp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x6xf32>

// -----

// expected-error@+1 {{'ds.state' op expects a mesh in its module, but got none}}
ds.state @state_c4_no_mesh role(buffer) shards [dp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>
