// RUN: ds-opt %s --split-input-file --verify-diagnostics

// Views of states, and what exists of them.

ds.mesh @mesh axes [dp = 2, tp = 2]
// expected-error@+1 {{'ds.state' op expects one entry in shards per dimension of the view array<i64: 3, 4, 2, 5>, but got 2}}
ds.state @state_c4_entries_of_the_view role(parameter) trainable view [3, 4, 2, 5] shards [tp, none] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24x5xf32>

// -----

ds.mesh @mesh axes [dp = 2, tp = 2]
// expected-error@+1 {{'ds.state' op expects 2 ranks to divide dimension 0 of its view, but got 3}}
ds.state @state_c4_uneven_view role(parameter) trainable view [3, 4, 2, 5] shards [tp, none, none, none] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24x5xf32>

// -----

ds.mesh @mesh axes [dp = 2, tp = 8]
// expected-error@+1 {{'ds.state' op expects 8 ranks to divide dimension 0 of its view, but got 50258}}
ds.state @state_c4_padded_too_little role(parameter) trainable view [50258, 768] existing 50257 shards [tp, none] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<50257x768xf32>

// -----

// expected-error@+1 {{'ds.state' op has the view [3, 4, 2, 6] of 144 elements, but 120 elements}}
ds.state @state_c7_other_elements role(parameter) trainable view [3, 4, 2, 6] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24x5xf32>

// -----

// expected-error@+1 {{'ds.state' op has the view [5, 24], whose dimensions do not multiply to those of [24, 5]}}
ds.state @state_c7_other_dimensions role(parameter) trainable view [5, 24] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24x5xf32>

// -----

// expected-error@+1 {{'ds.state' op has a view of size -24, or its product overflows}}
ds.state @state_c7_negative role(parameter) trainable view [-24, 5] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24x5xf32>

// -----

// Columns of padding have no word: a view of more columns has other elements.
// expected-error@+1 {{'ds.state' op has the view [24, 6] of 144 elements, but 120 elements}}
ds.state @state_c7_padded_columns role(parameter) trainable view [24, 6] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24x5xf32>

// -----

// expected-error@+1 {{'ds.state' op has the view [25, 5] of 125 elements, but 120 elements}}
ds.state @state_c7_padding_without_existing role(parameter) trainable view [25, 5] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24x5xf32>

// -----

ds.mesh @mesh axes [dp = 2]
ds.state @w role(parameter) trainable init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<60xf32>
ds.bucket @k members [@w] offsets [0] elements 64
// expected-error@+1 {{'ds.state' op expects a state with a bucket to have no view: its members have theirs}}
ds.state @state_c7_bucket role(parameter) bucket(@k) view [2, 32] shards [dp, none] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<64xf32>

// -----

// expected-error@+1 {{'ds.state' op has 0 existing rows of 25, but allowed are 1 to 24}}
ds.state @state_c8_none_exist role(parameter) trainable view [25, 5] existing 0 init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24x5xf32>

// -----

// expected-error@+1 {{'ds.state' op has 26 existing rows of 25, but allowed are 1 to 24}}
ds.state @state_c8_more_exist role(parameter) trainable view [25, 5] existing 26 init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<26x5xf32>

// -----

// expected-error@+1 {{'ds.state' op has 24 existing rows of 24, but allowed are 1 to 23}}
ds.state @state_c8_all_exist role(parameter) trainable view [24, 5] existing 24 init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24x5xf32>

// -----

// expected-error@+1 {{'ds.state' op has 24 existing rows, but no view}}
ds.state @state_c8_no_view role(parameter) trainable existing 24 init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24x5xf32>

// -----

ds.mesh @mesh axes [dp = 2, tp = 2]
// expected-error@+1 {{'ds.state' op has pieces that leave 4 of dimension 0}}
ds.state @state_c10_too_short role(parameter) trainable pieces [12, 8] shards [tp, none] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24x5xf32>

// -----

ds.mesh @mesh axes [dp = 2, tp = 2]
// expected-error@+1 {{'ds.state' op has a piece of size 16, but 12 left in dimension 0}}
ds.state @state_c10_too_long role(parameter) trainable pieces [12, 16] shards [tp, none] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24x5xf32>

// -----

ds.mesh @mesh axes [dp = 2, tp = 2]
// expected-error@+1 {{'ds.state' op has a piece of size 15, which tp cannot cut into 2 parts}}
ds.state @state_c10_odd role(parameter) trainable pieces [15, 9] shards [tp, none] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24x5xf32>

// -----

ds.mesh @mesh axes [dp = 2, tp = 2]
// expected-error@+1 {{'ds.state' op has pieces and 0 cut dimensions, but exactly one has pieces}}
ds.state @state_c10_not_cut role(parameter) trainable pieces [16, 8] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24x5xf32>

// -----

ds.mesh @mesh axes [dp = 2, tp = 2]
// expected-error@+1 {{'ds.state' op has pieces and 2 cut dimensions, but exactly one has pieces}}
ds.state @state_c10_cut_twice role(parameter) trainable pieces [16, 8] shards [tp, dp] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<24x6xf32>

// -----

ds.mesh @mesh axes [dp = 2, tp = 2]
// expected-error@+1 {{'ds.state' op has pieces and rows of padding, but only one of both is allowed}}
ds.state @state_c10_padded role(parameter) trainable view [24, 5] existing 23 pieces [16, 8] shards [tp, none] init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<23x5xf32>
