// A table of 50257 words and a fused QKV that is cut by heads, on 1, 2 and 8 ranks: what one run saves another resumes
// from, and the files are those of one rank. Padding is zero in every step: the sums of squares say so.
// REQUIRES: train, torch
// RUN: rm -rf %t && mkdir %t && %python -c "import numpy; numpy.save('%t/x.npy', numpy.ones((8, 4), 'f4'))"
// RUN: for ranks in 1 2 8; do words=$(((50257 + ranks - 1) / ranks * ranks)); \
// RUN:   existing="existing 50257"; all=%%all; [ $ranks != 1 ] || { existing=; all=%%sum; }; \
// RUN:   sed -e "s/TP/$ranks/; s/WORDS/$words/; s/EXISTING/$existing/; s/ROWS/$((words / ranks))/g; s/HEADS/$((144 / ranks))/g" \
// RUN:     -e "/^    return/s/%%all/$all/" %s | if [ $ranks = 1 ]; then grep -v all_reduce; else cat; fi > %t/tp$ranks.mlir; \
// RUN:   ds-opt %t/tp$ranks.mlir --ranks $ranks --emit=program -o %t/tp$ranks.dsx || exit 1; done
// RUN: cd %t && ds-run tp1.dsx --data x.npy --steps 3 --seed 7 --save-weights one.safetensors --log-jsonl one.jsonl
// RUN: ds-run tp2.dsx --data x.npy --ranks 2 --steps 1 --seed 7 --save two --check-replicas 1
// RUN: ds-run tp8.dsx --data x.npy --ranks 8 --steps 2 --resume two --save eight
// RUN: ds-run tp2.dsx --data x.npy --ranks 2 --steps 3 --resume eight --save-weights three.safetensors --save last --log-jsonl three.jsonl
// RUN: cmp one.safetensors three.safetensors
// RUN: ds-ckpt show two --tensors | FileCheck %s --check-prefix=SHOW
// RUN: ds-ckpt export last model && ls model && cat one.jsonl three.jsonl | FileCheck %s --check-prefix=LOSS
// SHOW-DAG: 'table' parameter F32 [50257, 2], as [50258, 2] with 1 row of padding, dim 0 over tp
// SHOW-DAG: 'qkv' parameter F32 [144, 48], as [3, 8, 6, 48], dim 1 over tp

// 2 * 50257 ones, and a quarter of it after each step.
// LOSS: "step":1,{{.*}}"loss":100514
// LOSS: "step":3,{{.*}}"loss":6282.125
// LOSS: "step":3,{{.*}}"loss":6282.125

module attributes {ds.phase = #ds.phase<sharded>} {
  ds.mesh @mesh axes [dp = 1, tp = TP]
  ds.state @table role(parameter) trainable view [WORDS, 2] EXISTING shards [tp, none] init(#ds.init<constant, 1.0, 0.0>) home(device) : tensor<50257x2xf32>
  ds.state @qkv role(parameter) trainable view [3, 8, 6, 48] shards [none, tp, none, none] init(#ds.init<normal, 0.0, 1.0>) home(device) : tensor<144x48xf32>
  ds.state @loss role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<f32>
  ds.state @step role(scalar) init(#ds.init<zero, 0.0, 0.0>) home(device) : tensor<i64>
  ds.schedule stage 0 [#ds.run<@last, first 0, count 1, gradients set, reduced true>]
  func.func @last(%x: tensor<1x4xf32> {ds.input = "x"}, %table: tensor<ROWSx2xf32> {ds.state = @table}, %qkv: tensor<HEADSx48xf32> {ds.state = @qkv}, %step: tensor<i64> {ds.state = @step})
      -> (tensor<f32> {ds.state = @loss}, tensor<i64> {ds.state = @step}, tensor<ROWSx2xf32> {ds.state = @table}, tensor<HEADSx48xf32> {ds.state = @qkv})
      attributes {ds.segment = #ds.segment<forward, backward, update>} {
    %half = ds.constant dense<0.5> : tensor<f32>
    %one = ds.constant dense<1> : tensor<i64>
    %squares = ds.mul %table, %table {ds.work = #ds.work<forward>} : tensor<ROWSx2xf32>
    %sum = ds.reduce sum %squares dims [0, 1] {ds.work = #ds.work<forward>} : tensor<ROWSx2xf32> -> tensor<f32>
    %all = ds.all_reduce sum %sum along tp {ds.work = #ds.work<forward>} : tensor<f32>
    %next = ds.add %step, %one {ds.work = #ds.work<update>} : tensor<i64>
    %halves = ds.broadcast %half dims [] {ds.work = #ds.work<update>} : tensor<f32> -> tensor<ROWSx2xf32>
    %halved = ds.mul %table, %halves {ds.work = #ds.work<update>} : tensor<ROWSx2xf32>
    %more = ds.broadcast %half dims [] {ds.work = #ds.work<update>} : tensor<f32> -> tensor<HEADSx48xf32>
    %less = ds.mul %qkv, %more {ds.work = #ds.work<update>} : tensor<HEADSx48xf32>
    return %all, %next, %halved, %less : tensor<f32>, tensor<i64>, tensor<ROWSx2xf32>, tensor<HEADSx48xf32>
  }
}
