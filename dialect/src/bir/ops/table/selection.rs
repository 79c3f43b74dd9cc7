//! Choosing by masks, ranges and comparisons.

macro_rules! selection_section {
    ([$($rest:ident)*] { $($done:tt)* }) => {
        next_section! { [$($rest)*] { $($done)*

            /// Chooses per element: `on_true` where `pred` is not zero, else `on_false`.
            ///
            /// ```bir
            /// select %d <- %mask, %x, 0.0
            /// ```
            Select = "select": "choose by a mask" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("results");
                    pred = input(CHIP, INTS).doc("mask, tested for not zero");
                    on_true = imm(ImmType::F32, CHIP, NUMERIC).doc("chosen where the mask is set");
                    on_false = imm(ImmType::F32, CHIP, NUMERIC).doc("chosen elsewhere: a number, a tile, or one f32 per partition");
                }
                attrs {
                    reverse = optional(Flag).doc("the mask is inverted");
                }
                rules .engines(&[Dve]).traits_of(&[Trait::Elementwise])
                    .same_shape(&["dst", "pred"]).check(checks::select)
            }

            /// `select` with a running maximum of the results of each row.
            ///
            /// ```bir
            /// select_reduce %d, reduce reset %m <- %mask, %x, -3.0e38
            /// ```
            SelectReduce = "select_reduce": "choose by a mask, and keep the row maximum" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("results");
                    reduce_res = out(CHIP, FLOATS).opt().key("reduce").key_words(&["reduce_cmd"]).doc("largest result, one per partition");
                    pred = input(CHIP, DTypeSet::of(&[DType::I8, DType::U8, DType::I16, DType::U16, DType::Bool])).doc("mask, tested for not zero");
                    on_true = imm(ImmType::F32, CHIP, NUMERIC).doc("chosen where the mask is set");
                    on_false = imm(ImmType::F32, CHIP, NUMERIC).doc("chosen elsewhere: a number or one f32 per partition");
                }
                attrs {
                    reverse = optional(Flag).doc("the mask is inverted");
                    reduce_cmd = optional(Enum(&REDUCE_CMDS)).default("idle").doc("what happens to the accumulator");
                }
                rules .engines(&[Dve]).traits_of(&[Trait::HiddenState, Trait::Elementwise])
                    .same_shape(&["dst", "pred"]).per_partition(&["reduce_res"]).check(checks::select_reduce)
            }

            /// Keeps the elements whose position lies in a range of their row: with `j = range_start + i`,
            /// element `i` stays where `cmp0(j, bound0)` and `cmp1(j, bound1)` hold, and becomes the smallest
            /// finite f32 elsewhere. The row maximum may go through the accumulator.
            ///
            /// ```bir
            /// range_select greater_equal less %d, reduce reset %m <- %x, %from, %to {range_start = 0}
            /// ```
            RangeSelect = "range_select": "choose by position in the row" {
                operands {
                    dst = out(CHIP, FLOATS).doc("results");
                    reduce_res = out(CHIP, FLOATS).opt().key("reduce").key_words(&["reduce_cmd"]).doc("largest value chosen, one per partition");
                    src = input(CHIP, FLOATS).doc("values");
                    bound0 = input(CHIP, F32).doc("one f32 per partition");
                    bound1 = input(CHIP, F32).doc("one f32 per partition");
                }
                attrs {
                    cmp0 = required(Enum(&COMPARE_OPS)).doc("comparison with `bound0`; not `not_equal`");
                    cmp1 = required(Enum(&COMPARE_OPS)).doc("comparison with `bound1`; not `not_equal`");
                    range_start = optional(Int { min: 0, max: (1 << 24) - 1 }).default("0").doc("position of the first element");
                    reduce_cmd = optional(Enum(&REDUCE_CMDS)).default("reset").doc("what happens to the accumulator");
                }
                rules .words(&["cmp0", "cmp1"]).engines_by_target(&[], &[Dve], &[Dve])
                    .traits_of(&[Trait::HiddenState, Trait::Elementwise]).same_shape(&["dst", "src"])
                    .per_partition(&["reduce_res", "bound0", "bound1"]).check(checks::range_select)
            }

            /// Keeps an element where `op(offset + p * channel_multiplier + Σ step_k * i_k, 0)` holds, and
            /// writes a number elsewhere; the left side is computed in int32.
            ///
            /// ```bir
            /// affine_select greater_equal %d <- %x, -3.0e38 {channel_multiplier = 1, pattern = [[-1, 512]]}
            /// ```
            AffineSelect = "affine_select": "choose by an affine comparison" {
                operands {
                    dst = out(SBUF, NUMERIC).doc("results");
                    src = input(SBUF, NUMERIC).doc("values kept where the comparison holds");
                    on_false = literal(ImmType::F32).doc("number written elsewhere");
                }
                attrs {
                    op = required(Enum(&COMPARE_OPS)).doc("comparison with 0");
                    pattern = required(Pattern).doc("`[step, count]` per free dimension, outermost first");
                    offset = optional(Int { min: i32::MIN as i64, max: i32::MAX as i64 }).default("0").doc("value at the first element");
                    channel_multiplier = optional(Int { min: i32::MIN as i64, max: i32::MAX as i64 }).default("0").doc("increment per partition");
                }
                rules .words(&["op"]).engines(&[Pool]).traits_of(&[Trait::Elementwise])
                    .same_shape(&["dst", "src"]).check(checks::ramp)
            }

            /// Overwrites the elements whose predicate is not zero and leaves the others.
            ///
            /// ```bir
            /// copy_predicated %d <- %mask, %src
            /// ```
            CopyPredicated = "copy_predicated": "copy under a mask" {
                operands {
                    dst = inout(CHIP, NUMERIC).doc("tile updated");
                pred_out = out(CHIP, DTypeSet::of(&[DType::U8, DType::U16, DType::U32, DType::Bool])).opt().key("pred_out").doc("the mask that was applied, as 0 and 1");
                    pred = input(CHIP, DTypeSet::of(&[DType::U8, DType::U16, DType::U32, DType::Bool])).doc("mask, tested for not zero");
                    on_true = imm(ImmType::Dst, CHIP, NUMERIC).doc("values copied, of the dtype of `dst`");
                }
                attrs {
                    reverse = optional(Flag).doc("the mask is inverted");
                }
                rules .engines(&[Dve]).traits_of(&[Trait::HiddenState, Trait::InPlace]).same_shape(&["dst", "pred", "pred_out"]).same_dtype(&["dst", "on_true"])
                    .check(checks::copy_predicated)
            }
        } }
    };
}
