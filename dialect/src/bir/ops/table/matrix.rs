//! The tensor engine, and quantisation for it.

macro_rules! matrix_section {
    ([$($rest:ident)*] { $($done:tt)* }) => {
        next_section! { [$($rest)*] { $($done)*

            /// Multiplies on the tensor engine: `dst[m, n] = Σ_k stationary[k, m] * moving[k, n]`, with `k`
            /// on the partitions of both inputs. `accumulate` adds to what `dst` holds instead of replacing
            /// it; `unless_first(%k)` replaces in the first iteration of loop `%k` and adds in the others.
            ///
            /// ```bir
            /// matmult %p <- stationary %a, moving %b {accumulate = unless_first(%k)}
            /// ```
            Matmult = "matmult": "matrix multiply into PSUM" {
                operands {
                    dst = out(PSUM, DTypeSet::of(&[DType::F32, DType::Bf16, DType::F16])).doc("M partitions, N elements each");
                    stationary = input(SBUF, FLOATS).key("stationary").doc("K partitions, M elements each");
                    moving = input(SBUF, FLOATS).key("moving").doc("K partitions, N elements each");
                }
                attrs {
                    accumulate = optional(Accumulate).doc("adds to what `dst` holds");
                    double_row = optional(Flag).doc("both inputs hold two rows of K per partition, outermost in the free dimensions; fp8, from `trn2` on");
                stationary_onezero = optional(Flag).doc("hint: `stationary` of f32 holds only 0 and 1");
                moving_onezero = optional(Flag).doc("hint: `moving` of f32 holds only 0 and 1");
                tile_size = optional(AttrType::IntList { min: 32, max: 128 }).doc("`[rows, columns]` of the array used: 32, 64 or 128");
                tile_position = optional(AttrType::IntList { min: 0, max: 96 }).doc("`[row, column]` where that part of the array begins");
                is_transpose = optional(Flag).doc("moves data bit by bit; `moving` is an identity matrix");
                }
                rules .engines(&[Pe]).check(checks::matmult)
            }

            /// `matmult` of a structured sparse stationary side: `tags` say which of every 4, 8, 12 or 16
            /// rows of `moving` each kept element belongs to. Blocks are of four partitions, each with
            /// `ratio` rows of N elements, one behind another; rows of a block are counted partition by
            /// partition. The tag of `stationary[p, m]` is the bits from `4 (m mod 4)` on of
            /// `tags[p, m div 4]`; a tag that names no row is an error of the run.
            ///
            /// ```bir
            /// matmult_sparse %p <- stationary %a, moving %b, tags %tags {ratio = 4}
            /// ```
            MatmultSparse = "matmult_sparse": "matrix multiply with a sparse side" {
                operands {
                    dst = out(PSUM, DTypeSet::of(&[DType::F32, DType::Bf16])).doc("M partitions, N elements each");
                    stationary = input(SBUF, FLOATS).key("stationary").doc("K partitions, M elements each: the elements kept");
                    moving = input(SBUF, FLOATS).key("moving").doc("K partitions, `ratio` * N elements each");
                    tags = input(SBUF, DTypeSet::of(&[DType::U16])).key("tags").doc("4-bit positions of the elements kept, four in an element");
                }
                attrs {
                    ratio = required(Int { min: 1, max: 4 }).doc("rows of `moving` per element kept: 4:4, 4:8, 4:12 or 4:16");
                    accumulate = optional(Accumulate).doc("adds to what `dst` holds");
                }
                rules .engines_by_target(&[], &[Pe], &[Pe]).check(checks::matmult_sparse)
            }

            /// Multiplies packed MX data with their block scales:
            /// `dst[m, n] = Σ_p Σ_j stationary[p, m, j] * 2^(s - 127) * moving[p, n, j] * 2^(v - 127)`. The
            /// scale of partition `p` lies at partition `32 * (p div 32) + off + (p mod 32) div 8`, `off`
            /// being where the scale operand starts. Values are scaled in f32 first; then it is a `matmult`
            /// over `4 p + j`.
            ///
            /// ```bir
            /// matmult_mx %p <- stationary %a, stationary_scale %sa, moving %b, moving_scale %sb
            /// ```
            MatmultMx = "matmult_mx": "matrix multiply of MX data" {
                operands {
                    dst = out(PSUM, DTypeSet::of(&[DType::F32, DType::Bf16])).doc("M partitions, N elements each");
                    stationary = input(SBUF, PACKED).key("stationary").doc("K partitions, M elements of four each");
                    stationary_scale = input(SBUF, DTypeSet::of(&[DType::U8, DType::F8E8M0FNU])).any_partitions().key("stationary_scale").doc("scales of `stationary`, M per partition used");
                    moving = input(SBUF, PACKED).key("moving").doc("K partitions, N elements of four each");
                    moving_scale = input(SBUF, DTypeSet::of(&[DType::U8, DType::F8E8M0FNU])).any_partitions().key("moving_scale").doc("scales of `moving`, N per partition used");
                }
                attrs {
                    accumulate = optional(Accumulate).doc("adds to what `dst` holds");
                }
                rules .engines_by_target(&[], &[], &[Pe]).check(checks::matmult_mx)
            }

            /// Quantises to MX: groups of 8 partitions x 4 neighbouring elements share a power-of-two scale,
            /// chosen so that nothing saturates: with `a` the largest magnitude, `2^(floor(log2 a) - 7)` for
            /// e4m3fn and `2^(floor(log2 a) - 14)` for e5m2, as a byte with bias 127; 0 for a group of
            /// zeros, and 255 with NaN data for a group that is not finite. Scales lie as `matmult_mx`
            /// reads them.
            ///
            /// ```bir
            /// quantize_mx %q, %scale <- %t
            /// ```
            QuantizeMx = "quantize_mx": "quantise to MX data and scales" {
                operands {
                    dst = out(SBUF, DTypeSet::of(&[DType::F8E4M3FNx4, DType::F8E5M2x4])).doc("packed data, a quarter as many elements");
                    scale = inout(SBUF, DTypeSet::of(&[DType::U8, DType::F8E8M0FNU])).any_partitions().doc("scales, one per group; other rows stay");
                    src = input(SBUF, DTypeSet::of(&[DType::Bf16, DType::F16])).doc("32, 64, 96 or 128 partitions");
                }
                rules .engines_by_target(&[], &[], &[Dve]).check(checks::quantize_mx)
            }
        } }
    };
}
