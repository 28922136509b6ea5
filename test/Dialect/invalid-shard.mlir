// RUN: ds-opt %s --split-input-file --verify-diagnostics

// Meshes, buckets and sharded states: one case per constraint.

// expected-error@+1 {{'ds.mesh' op expects a size of at least 1 for axis tp, but got 0}}
ds.mesh @mesh_c1_empty_axis axes [dp = 4, tp = 0, pp = 1, sp = 1]

// -----

// expected-error@+1 {{'ds.mesh' op expects 1 sizes, but got 2}}
"ds.mesh"() <{sym_name = "mesh_c1_two_sizes", axes = ["dp"], sizes = array<i64: 1, 2>}> : () -> ()

// -----

// expected-error@+1 {{'ds.mesh' op expects at most 4294967295 ranks, but axis dp has 65536}}
ds.mesh @mesh_c1_many_ranks axes [pp = 65536, dp = 65536]

// -----

// expected-error@+1 {{'ds.mesh' op expects an axis, but got none}}
ds.mesh @mesh_c3_no_axes axes []

// -----

// expected-error@+1 {{'ds.mesh' op expects axes that can be told apart, but it has 17 axes, the limit is 16}}
ds.mesh @mesh_c3_many_axes axes [a = 1, b = 1, c = 1, d = 1, e = 1, f = 1, g = 1, h = 1, i = 1, j = 1, k = 1, l = 1, m = 1, n = 1, o = 1, p = 1, q = 1]

// -----

// expected-error@+1 {{'ds.mesh' op expects axes that can be told apart, but axes 0 and 2 are both 'dp'}}
ds.mesh @mesh_c3_same_name axes [dp = 2, tp = 2, dp = 2]

// -----

// expected-error@+1 {{'ds.mesh' op expects axes that can be told apart, but 'dp' is an axis and, by 'dp.node', cut into several}}
ds.mesh @mesh_c3_whole_and_part axes [dp.node = 2, dp = 2]

// -----

// expected-error@+1 {{'ds.mesh' op expects axes that can be told apart, but axis 1 has a name of 0 bytes, allowed are 1 to 64}}
ds.mesh @mesh_c3_no_name axes [dp = 2, "" = 2]

// -----

// expected-note@+1 {{the first is here}}
ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
// expected-error@+1 {{'ds.mesh' op expects to be the only mesh of its module, but got a second}}
ds.mesh @mesh_c2_second axes [dp = 4]

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects members that are parameters, but got @nothing}}
ds.bucket @bucket_c1_unknown_member members [@nothing] offsets [0] elements 128

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @b role(buffer) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects members that are parameters, but got @b}}
ds.bucket @bucket_c1_buffer members [@b] offsets [0] elements 128

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-note@+1 {{member @v is declared here}}
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xbf16>
// expected-error@+1 {{'ds.bucket' op expects members of 'f32', but got 'bf16'}}
ds.bucket @bucket_c1_two_types members [@w, @v] offsets [0, 128] elements 256

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects each parameter in one bucket at most, but got @w twice}}
ds.bucket @bucket_c1_member_twice members [@w, @w] offsets [0, 128] elements 256

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-note@+1 {{it is a member of this one too}}
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.bucket' op expects each parameter in one bucket at most, but got @w}}
ds.bucket @bucket_c1_member_of_two members [@w] offsets [0] elements 128

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects 2 offsets, one per member, but got 1}}
ds.bucket @bucket_c2_one_offset members [@w, @v] offsets [0] elements 256

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects offsets that are multiples of 32, but got 100}}
ds.bucket @bucket_c2_crooked_offset members [@w, @v] offsets [0, 100] elements 256

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects offsets that are multiples of 32, but got -32}}
ds.bucket @bucket_c2_negative_offset members [@w] offsets [-32] elements 128

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects members that do not overlap, but got one of 100 elements at 0 before one at 96}}
ds.bucket @bucket_c2_overlap members [@w, @v] offsets [0, 96] elements 256

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects members inside 128 elements, but got one of 100 at 128}}
ds.bucket @bucket_c2_outside members [@w, @v] offsets [0, 128] elements 128

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-error@+1 {{'ds.bucket' op expects a positive multiple of 32 elements, but got 144}}
ds.bucket @bucket_c3_uneven members [@w] offsets [0] elements 144

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects an owner exactly for gradients, moments and masters without a bucket, but got role moment with one}}
ds.state @state_c1_both role(moment) slot("state_c1_both") owner(@w) bucket(@k) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xf32>

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects a state with a bucket to be an untrained parameter, gradient, moment or master without aliases, but got role parameter}}
ds.state @state_c2_trained_bucket role(parameter) trainable bucket(@k) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xf32>

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects a state with a bucket to be an untrained parameter, gradient, moment or master without aliases, but got role scalar}}
ds.state @state_c3_scalar_bucket role(scalar) bucket(@k) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xf32>

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects a bucket, but got @w}}
ds.state @state_c3_no_bucket role(moment) slot("state_c3_no_bucket") bucket(@w) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xf32>

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
// expected-note@+1 {{bucket @k is declared here}}
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects 128 elements, but got 'tensor<64xf32>'}}
ds.state @state_c3_short role(moment) slot("state_c3_short") bucket(@k) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xf32>

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects the members' element type 'f32', but got 'bf16'}}
ds.state @state_c3_other_type role(parameter) bucket(@k) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xbf16>

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects one entry in shards per dimension of 'tensor<128xf32>', but got 2}}
ds.state @state_c4_entries role(moment) slot("state_c4_entries") bucket(@k) shards [dp, none] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128xf32>

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects each axis once, but got dp twice}}
ds.state @state_c4_twice role(buffer) shards [dp, dp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<128x128xf32>

// -----

ds.mesh @mesh axes [pp = 2, dp = 4, sp = 2, tp = 1]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<100xf32>
ds.bucket @k members [@w] offsets [0] elements 128
// expected-error@+1 {{'ds.state' op expects 4 ranks to divide dimension 1, but got 'tensor<8x6xf32>'}}
ds.state @state_c4_uneven role(buffer) shards [none, dp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x6xf32>

// -----

// expected-note@+2 {{declare one, as ds.mesh @mesh axes [dp = 2]}}
// expected-error@+1 {{'ds.state' op expects a mesh in its module, but got none}}
ds.state @state_c4_no_mesh role(buffer) shards [dp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>

// -----

// expected-note@+1 {{the mesh is [dp.node = 2, dp.local = 2]}}
ds.mesh @mesh axes [dp.node = 2, dp.local = 2]
// expected-error@+1 {{'ds.state' op expects axes of the mesh, but got tp}}
ds.state @state_c4_unknown_axis role(buffer) shards [tp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>

// -----

ds.mesh @mesh axes [dp.node = 2, dp.local = 2]
// expected-error@+1 {{'ds.state' op expects each axis once, but got dp.local twice}}
ds.state @state_c4_whole_and_part role(buffer) shards [dp, dp.local] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x8xf32>

// -----

// expected-error@+2 {{expects each axis once, but got dp twice}}
ds.mesh @mesh axes [dp = 2]
ds.state @state_axes_twice role(buffer) shards [(dp, dp)] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8xf32>

// -----

ds.mesh @mesh axes [dp = 2, sp = 2]
// expected-error@+1 {{'ds.state' op expects 4 ranks to divide dimension 0, but got 'tensor<6xf32>'}}
ds.state @state_c4_uneven_group role(buffer) shards [(dp, sp)] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<6xf32>

// -----

ds.mesh @mesh axes [dp = 4]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<60xf32>
ds.bucket @k members [@w] offsets [0] elements 64
// expected-error@+1 {{'ds.state' op expects parts of a multiple of 32 elements for each rank, but got 16}}
ds.state @state_c3_small_parts role(parameter) bucket(@k) shards [dp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xf32>

// -----

// The parts of a member that is cut already are what a bucket holds.
ds.mesh @mesh axes [dp = 2, tp = 2]
ds.state @w role(parameter) trainable shards [none, tp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<8x16xf32>
ds.bucket @k members [@w] offsets [0] elements 64
ds.state @state_c3_of_parts role(parameter) bucket(@k) shards [dp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xf32>

// -----

// expected-error@+1 {{'ds.mesh' op expects axes of [dp = 2] in samples, but got tp}}
ds.mesh @mesh_c4_unknown_axis axes [dp = 2] samples tp

// -----

// expected-error@+1 {{'ds.mesh' op expects tensors apart from samples, zero and stages, but got tp in both}}
ds.mesh @mesh_c4_samples_and_tensors axes [dp = 2, tp = 2] samples (dp, tp) tensors tp

// -----

// expected-error@+1 {{'ds.mesh' op expects tensors apart from samples, zero and stages, but got pp in both}}
ds.mesh @mesh_c4_stages_and_tensors axes [pp = 2, tp = 2] stages pp tensors (pp, tp)

// -----

// expected-error@+1 {{'ds.mesh' op expects axes of [dp = 2] in tensors, but got tp}}
ds.mesh @mesh_c4_unknown_tensors axes [dp = 2] samples dp tensors tp

// -----

// expected-error@+1 {{'ds.mesh' op expects stages apart from samples and zero, but got pp in both}}
ds.mesh @mesh_c4_samples_and_stages axes [pp = 2, dp = 2] samples (pp, dp) stages pp

// -----

// expected-error@+1 {{'ds.mesh' op expects stages apart from samples and zero, but got dp.node in both}}
ds.mesh @mesh_c4_zero_and_stages axes [dp.node = 2, dp.local = 2] zero dp stages dp.node

// -----

ds.mesh @mesh axes [dp = 2, tp = 2] samples dp
ds.state @w role(parameter) trainable shards [tp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xf32>
// expected-note@+1 {{member @v is declared here}}
ds.state @v role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>
// expected-error@+1 {{'ds.bucket' op expects members cut along tp, as @w is, but got no axis}}
ds.bucket @bucket_c4_cut_and_whole members [@w, @v] offsets [0, 32] elements 64

// -----

ds.mesh @mesh axes [dp = 2, tp = 2] samples dp
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>
// expected-note@+1 {{member @v is declared here}}
ds.state @v role(parameter) trainable addends tp init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>
// expected-error@+1 {{'ds.bucket' op expects members with addends along dp, as @w is, but got dp, tp}}
ds.bucket @bucket_c4_other_addends members [@w, @v] offsets [0, 32] elements 64

// -----

ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>
// expected-note@+1 {{member @v is declared here}}
ds.state @v role(parameter) trainable copy init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>
// expected-error@+1 {{'ds.bucket' op expects members that are no copies, as @w is, but got a copy}}
ds.bucket @bucket_c4_copy members [@w, @v] offsets [0, 32] elements 64

// -----

ds.mesh @mesh axes [dp = 2, tp = 2] samples dp
// expected-error@+1 {{'ds.state' op expects addends along axes that do not cut it, but got tp}}
ds.state @state_c6_cut_axis role(parameter) shards [tp] addends tp init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>

// -----

ds.mesh @mesh axes [dp = 2, tp = 2] samples dp
// expected-error@+1 {{'ds.state' op expects addends and copies of parameters without a bucket, but got role buffer}}
ds.state @state_c6_buffer role(buffer) addends tp init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>

// -----

ds.mesh @mesh axes [dp = 2] samples dp
// expected-error@+2 {{'ds.state' op expects axes of the mesh, but got tp}}
// expected-note@-2 {{the mesh is [dp = 2]}}
ds.state @state_c6_unknown_axis role(parameter) addends tp init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<32xf32>
