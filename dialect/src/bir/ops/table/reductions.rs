//! Reductions, scans, statistics, the eight largest.

macro_rules! reductions_section {
    ([$($rest:ident)*] { $($done:tt)* }) => {
        next_section! { [$($rest)*] { $($done)*

            /// Reduces trailing dimensions of a tile. `axes` count the dimensions of the operand's access,
            /// 0 being the partition, and end at the last one; the partition is never reduced.
            ///
            /// ```bir
            /// tensor_reduce max %m <- %t {axes = [1], negate}
            /// ```
            TensorReduce = "tensor_reduce": "reduce trailing dimensions" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("one result per remaining element");
                    src = input(CHIP, NUMERIC).doc("values");
                }
                attrs {
                    op = required(Enum(&ALU_OPS)).doc("how values are combined");
                    axes = required(AttrType::IntList { min: 0, max: 31 }).doc("dimensions reduced");
                    negate = optional(Flag).doc("results are multiplied by -1");
                }
                rules .words(&["op"]).engines(&[Dve]).check(checks::tensor_reduce)
            }

            /// Reduces over partitions: `dst[0, i]` combines `src[p, i]` over all `p`. Slow; a `matmult` with
            /// a column of ones adds faster.
            ///
            /// ```bir
            /// tensor_partition_reduce add %sum <- %t
            /// ```
            TensorPartitionReduce = "tensor_partition_reduce": "reduce over partitions" {
                operands {
                    dst = out(SBUF, NUMERIC).doc("one partition");
                    src = input(SBUF, NUMERIC).doc("values");
                }
                attrs {
                    op = required(Enum(&ALU_OPS)).doc("`add`, `average`, `max`, `bitwise_or` or `bitwise_and`");
                }
                rules .words(&["op"]).engines(&[Pool]).check(checks::tensor_partition_reduce)
            }

            /// Computes `dst = op0(src, operand0)` and reduces each row of the results, before conversion,
            /// through the vector engine's accumulator.
            ///
            /// ```bir
            /// tensor_scalar_reduce multiply %d, reduce add reset %s <- %t, 2.0
            /// ```
            TensorScalarReduce = "tensor_scalar_reduce": "combine with a scalar, and reduce rows" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("results");
                    reduce_res = out(CHIP, NUMERIC).opt().key("reduce").key_words(&["reduce", "reduce_cmd"]).doc("reduced rows, one value per partition");
                    src = input(CHIP, NUMERIC).doc("values");
                    operand0 = imm(ImmType::F32, CHIP, F32).doc("a number or one f32 per partition");
                    init = imm(ImmType::F32, CHIP, F32).opt().key("init").doc("what the accumulator is loaded with by `load`");
                }
                attrs {
                    op0 = required(Enum(&ALU_OPS)).doc("elementwise operation");
                    reduce = optional(Enum(&ALU_OPS)).default("add").doc("`add`, `multiply`, `max` or `min`");
                    reduce_cmd = optional(Enum(&REDUCE_CMDS)).default("reset").doc("what happens to the accumulator");
                    negate = optional(Flag).doc("`reduce_res` is multiplied by -1, the accumulator is not");
                }
                rules .words(&["op0"]).engines(&[Dve]).traits_of(&[Trait::HiddenState, Trait::InPlace])
                    .same_shape(&["dst", "src"]).per_partition(&["reduce_res", "operand0", "init"]).check(checks::tensor_scalar_reduce)
            }

            /// A running combination along each row: `r_i = op1(op0(src_i, operand0), r_{i-1})`. The first
            /// `r` is the identity of `op1` for `reset`, `init` for `load`, what the accumulator holds for
            /// `accumulate`.
            ///
            /// ```bir
            /// tensor_scalar_cumulative multiply add %d <- %t, 1.0 {reduce_cmd = reset}
            /// ```
            TensorScalarCumulative = "tensor_scalar_cumulative": "a running sum, product or extreme" {
                operands {
                    dst = out(CHIP, CUMULATIVE).doc("values after every element");
                    src = input(CHIP, CUMULATIVE).doc("values");
                    operand0 = imm(ImmType::F32, CHIP, F32).doc("scalar of the first step: a number or one f32 per partition");
                    init = imm(ImmType::F32, CHIP, F32).opt().key("init").doc("what the accumulator is loaded with by `load`");
                }
                attrs {
                    op0 = required(Enum(&ALU_OPS)).doc("elementwise operation, arithmetic");
                    op1 = required(Enum(&ALU_OPS)).doc("`add`, `subtract`, `multiply`, `max` or `min`");
                    reduce_cmd = optional(Enum(&REDUCE_CMDS)).default("reset").doc("where the first value comes from");
                }
                rules .words(&["op0", "op1"]).engines(&[Dve]).traits_of(&[Trait::HiddenState, Trait::InPlace])
                    .same_shape(&["dst", "src"]).per_partition(&["operand0", "init"]).check(checks::tensor_scalar_cumulative)
            }

            /// A recurrence along each row: `r_i = op1(op0(lhs_i, r_{i-1}), rhs_i)`, with `initial` before
            /// the first element. The state stays in f32.
            ///
            /// ```bir
            /// tensor_tensor_scan multiply add %h <- %decay, %input, initial 0.0
            /// ```
            TensorTensorScan = "tensor_tensor_scan": "a linear recurrence along rows" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("state after every element");
                    lhs = input(CHIP, NUMERIC).doc("combined with the state");
                    rhs = input(CHIP, NUMERIC).doc("combined with the result of the first step");
                    initial = imm(ImmType::F32, CHIP, NUMERIC).key("initial").doc("state before the first element: a number or one element per partition");
                }
                attrs {
                    op0 = required(Enum(&ALU_OPS)).doc("first step");
                    op1 = required(Enum(&ALU_OPS)).doc("second step");
                    reverse0 = optional(Flag).doc("first step is op0(state, lhs)");
                    reverse1 = optional(Flag).doc("second step is op1(rhs, first)");
                }
                rules .words(&["op0", "op1"]).engines(&[Dve]).traits_of(&[Trait::InPlace]).same_shape(&["dst", "lhs", "rhs"])
                    .per_partition(&["initial"]).check(checks::scan)
            }

            /// Statistics of a row: count, mean and sum of squared deviations of the elements at even
            /// positions, then the same of those at odd positions.
            ///
            /// ```bir
            /// bn_stats %six <- %t
            /// ```
            BnStats = "bn_stats": "row statistics in two halves" {
                operands {
                    dst = out(CHIP, F32).doc("six values per partition");
                    src = input(CHIP, NUMERIC).doc("up to 512 elements per partition");
                }
                rules .engines(&[Dve]).check(checks::bn_stats)
            }

            /// Combines triples (count, mean, sum of squared deviations) into mean and population variance.
            ///
            /// ```bir
            /// bn_aggr %mv <- %six
            /// ```
            BnAggr = "bn_aggr": "combine row statistics" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("mean and variance");
                    src = input(CHIP, F32).doc("a multiple of three elements per partition");
                }
                rules .engines(&[Dve]).check(checks::bn_aggr)
            }

            /// The eight largest elements of each row, in descending order.
            ///
            /// ```bir
            /// max8 %top <- %t
            /// ```
            Max8 = "max8": "the eight largest of each row" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("eight values per partition");
                    src = input(CHIP, NUMERIC).doc("8 to 16384 elements per partition");
                }
                rules .engines(&[Dve]).check(checks::max8)
            }

            /// The positions of eight values in each row: position of the first element equal to each value,
            /// equal values taking successive ones; all ones where there is none.
            ///
            /// ```bir
            /// find_index8 %where <- %t, %top
            /// ```
            FindIndex8 = "find_index8": "positions of eight values in each row" {
                operands {
                    dst = out(CHIP, DTypeSet::of(&[DType::U32, DType::U16])).doc("eight positions per partition");
                    src = input(CHIP, NUMERIC).doc("8 to 16384 elements per partition");
                    values = input(CHIP, NUMERIC).doc("eight values per partition");
                }
                rules .engines(&[Dve]).check(checks::find_index8)
            }

            /// Copies rows with eight values replaced. The values are taken from the last to the first; each
            /// claims the smallest matching position that is not claimed yet.
            ///
            /// ```bir
            /// match_replace8 %d, %where <- %t, %top, -3.0e38
            /// ```
            MatchReplace8 = "match_replace8": "replace eight values in each row" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("rows with the matches replaced; may be `src`");
                    dst_index = out(CHIP, DTypeSet::of(&[DType::U32, DType::U16])).opt().doc("positions of the matches, eight per partition");
                    src = input(CHIP, NUMERIC).doc("8 to 16384 elements per partition");
                    values = input(CHIP, NUMERIC).doc("eight values per partition");
                    replacement = literal(ImmType::F32).doc("what matches become");
                }
                rules .engines(&[Dve]).traits_of(&[Trait::InPlace]).same_shape(&["dst", "src"]).check(checks::match_replace8)
            }

            /// The K largest of each group of 16 partitions, whose elements form one row in a snake: element
            /// e lies at partition `e mod 16`, column `e div 16`. Results are ascending, in a snake too. Of
            /// equal values the first counts as the largest; NaN ranks as -inf. What K leaves of the last
            /// column is -inf, at position 2^32 - 1.
            ///
            /// ```bir
            /// topk %best, %where <- %t {k = 64}
            /// ```
            Topk = "topk": "the K largest of 16 partitions" {
                operands {
                    dst = out(SBUF, DTypeSet::of(&[DType::Bf16])).doc("values, ascending");
                    dst_index = out(SBUF, DTypeSet::of(&[DType::U32])).doc("positions of the values");
                    src = input(SBUF, DTypeSet::of(&[DType::Bf16])).doc("values; a multiple of 16 partitions");
                }
                attrs {
                    k = required(Int { min: 1, max: 32767 }).doc("how many");
                }
                rules .engines(&[Pool]).same_shape(&["dst", "dst_index"]).check(checks::topk)
            }
        } }
    };
}
