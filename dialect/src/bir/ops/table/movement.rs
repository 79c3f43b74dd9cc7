//! Fills and copies on the compute engines.

macro_rules! movement_section {
    ([$($rest:ident)*] { $($done:tt)* }) => {
        next_section! { [$($rest)*] { $($done)*

            /// Fills a tile with one number, which is written as a number of the tile's dtype: an integer
            /// for integer tiles, with a point or exponent for floats.
            ///
            /// ```bir
            /// memset %acc <- 0.0
            /// ```
            Memset = "memset": "fill with a constant" {
                operands {
                    dst = out(CHIP, ANY).doc("tile filled");
                    value = literal(ImmType::Dst).doc("the number, stored in the dtype of `dst`");
                }
                rules .engines(&[Dve, Pool]).check(checks::memset)
            }

            /// Fills a tile with `offset + p * channel_multiplier + Σ step_k * i_k`, computed in wrapping
            /// int32 and converted to the tile's dtype; `p` counts the tile's partitions from 0.
            ///
            /// ```bir
            /// iota %t {offset = 5, channel_multiplier = 2, pattern = [[1, 512]]}
            /// ```
            Iota = "iota": "fill with an affine ramp" {
                operands {
                    dst = out(SBUF, NUMERIC).doc("tile filled");
                }
                attrs {
                    pattern = required(Pattern).doc("`[step, count]` per free dimension, outermost first; the counts multiply to the tile's elements per partition");
                    offset = optional(Int { min: i32::MIN as i64, max: i32::MAX as i64 }).default("0").doc("first value");
                    channel_multiplier = optional(Int { min: i32::MIN as i64, max: i32::MAX as i64 }).default("0").doc("increment per partition");
                }
                rules .engines(&[Pool]).check(checks::ramp)
            }

            /// Copies a tile, element by element in traversal order; equal dtypes copy bits.
            ///
            /// ```bir
            /// tensor_copy %c <- %p
            /// ```
            TensorCopy = "tensor_copy": "copy a tile" {
                operands {
                    dst = out(CHIP, ANY).doc("tile written");
                    src = input(CHIP, ANY).doc("tile read; equal partitions and elements");
                }
                rules .engines_by_target(&[Dve, Pool], &[Dve, Act, Pool], &[Dve, Act, Pool])
                    .traits_of(&[Trait::Elementwise]).same_shape(&["dst", "src"]).check(checks::copy)
            }

            /// Copies a tile whose two sides are walked differently (permuted or broadcast dimensions).
            ///
            /// ```bir
            /// generic_copy %c <- %t[p 0:128, off 0, 1 x 8, 8 x 64]
            /// ```
            GenericCopy = "generic_copy": "copy with a change of layout" {
                operands {
                    dst = out(CHIP, ANY).doc("tile written");
                    src = input(CHIP, ANY).doc("tile read; equal partitions and elements");
                }
                rules .engines_by_target(&[Dve, Pool], &[Dve, Act, Pool], &[Dve, Act, Pool])
                    .traits_of(&[Trait::Elementwise]).same_shape(&["dst", "src"]).check(checks::copy)
            }

            /// Copies a tile from an element offset read at run time: `src` is walked as written, from
            /// `offset` elements further on in each partition. An element outside the location is an error
            /// of the run.
            ///
            /// ```bir
            /// tensor_copy_dynamic_src %d <- %table[:, 0:64], offset %n
            /// ```
            TensorCopyDynamicSrc = "tensor_copy_dynamic_src": "copy from an offset in a register" {
                operands {
                    dst = out(CHIP, ANY).doc("tile written");
                    src = input(CHIP, ANY).doc("tile read; equal partitions and elements");
                    offset = reg().key("offset").doc("elements added to the offset of `src`");
                }
                rules .engines_by_target(&[Dve, Pool], &[Dve, Act, Pool], &[Dve, Act, Pool])
                    .traits_of(&[Trait::Dynamic]).same_shape(&["dst", "src"]).check(checks::copy)
            }

            /// Copies a tile to an element offset read at run time: `dst` is walked as written, from
            /// `offset` elements further on in each partition. What it may write is the whole location.
            ///
            /// ```bir
            /// tensor_copy_dynamic_dst %table[:, 0:64] <- %d, offset %n
            /// ```
            TensorCopyDynamicDst = "tensor_copy_dynamic_dst": "copy to an offset in a register" {
                operands {
                    dst = inout(CHIP, ANY).doc("tile written");
                    src = input(CHIP, ANY).doc("tile read; equal partitions and elements");
                    offset = reg().key("offset").doc("elements added to the offset of `dst`");
                }
                rules .engines_by_target(&[Dve, Pool], &[Dve, Act, Pool], &[Dve, Act, Pool])
                    .traits_of(&[Trait::Dynamic]).same_shape(&["dst", "src"]).check(checks::copy)
            }

            /// Moves partitions within each group of 32: `dst[32q + j] = src[32q + mask[j]]`. Mask value
            /// 255 leaves row `j` of `dst` as it is. In place is allowed.
            ///
            /// ```bir
            /// stream_shuffle %d <- %t {mask = [1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14, 17, 16, 19, 18, 21, 20, 23, 22, 25, 24, 27, 26, 29, 28, 31, 30]}
            /// ```
            StreamShuffle = "stream_shuffle": "permute partitions in groups of 32" {
                operands {
                    dst = inout(CHIP, ANY).doc("rows written where the mask says so");
                    src = input(CHIP, ANY).doc("rows read; as many elements each, maybe fewer rows");
                }
                attrs {
                    mask = required(AttrType::IntList { min: 0, max: 255 }).doc("32 numbers, 0 to 31 or 255");
                }
                rules .engines(&[Dve]).traits_of(&[Trait::InPlace]).same_dtype(&["dst", "src"]).check(checks::stream_shuffle)
            }

            /// Moves partitions within each group of 32 and adds rows that meet: row `mask[i]` of a group of
            /// `dst` is `init` there plus every row `i` of `src`; without `init`, the sum starts at 0.
            ///
            /// ```bir
            /// permute_implicit_reduce_add %d <- %t, init %z {mask = [0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15]}
            /// ```
            PermuteImplicitReduceAdd = "permute_implicit_reduce_add": "permute partitions, adding those that meet" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("sums");
                    src = input(CHIP, NUMERIC).doc("rows added");
                    init = input(CHIP, NUMERIC).opt().key("init").doc("what the sums start from; 0 where absent");
                }
                attrs {
                    mask = required(AttrType::IntList { min: 0, max: 31 }).doc("32 numbers: the row of its group each row is added to");
                }
                rules .engines(&[Dve]).same_shape(&["dst", "src", "init"]).check(checks::permute_add)
            }

            /// Reads the columns an index tile names: `dst[p, j] = src[p, index_j]` in every partition. The
            /// indices lie in a snake of 16 partitions: index j is `index[j mod 16, j div 16]`.
            ///
            /// ```bir
            /// tensor_gather %d <- %t, index %columns
            /// ```
            TensorGather = "tensor_gather": "read columns by number" {
                operands {
                    dst = out(CHIP, ANY).doc("columns read, in order");
                    src = input(CHIP, ANY).doc("tile read; its free dimensions are flattened");
                    index = input(SBUF, INDEX_DTYPES).key("index").doc("column numbers on 16 partitions");
                }
                rules .engines_by_target(&[], &[], &[Dve, Act, Pool]).traits_of(&[Trait::Dynamic]).same_dtype(&["dst", "src"])
                    .check(checks::tensor_gather)
            }

            /// Writes the columns an index tile names: `dst[p, index_j] = src[p, j]` in every partition; the
            /// other columns stay. Indices as in `tensor_gather`; a number may occur once.
            ///
            /// ```bir
            /// tensor_scatter %t <- %d, index %columns
            /// ```
            TensorScatter = "tensor_scatter": "write columns by number" {
                operands {
                    dst = inout(CHIP, ANY).doc("tile whose columns are written");
                    src = input(CHIP, ANY).doc("new columns, in order");
                    index = input(SBUF, INDEX_DTYPES).key("index").doc("column numbers on 16 partitions");
                }
                rules .engines_by_target(&[], &[], &[Dve, Act, Pool]).traits_of(&[Trait::Dynamic]).same_dtype(&["dst", "src"])
                    .check(checks::tensor_scatter)
            }

            /// Transposes a tile: `dst[f, p] = src[p, f]` over its flattened free dimensions. The tensor
            /// engine writes PSUM (up to 128 x 128), the vector engine any scratchpad (up to 32 x 32).
            ///
            /// ```bir
            /// transpose %p <- %t
            /// ```
            Transpose = "transpose": "swap partitions and elements" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("transposed tile");
                    src = input(CHIP, NUMERIC).doc("tile read");
                }
                rules .engines(&[Pe, Dve]).same_dtype(&["dst", "src"]).check(checks::transpose)
            }
        } }
    };
}
