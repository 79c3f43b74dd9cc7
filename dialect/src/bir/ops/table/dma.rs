//! DMA.

macro_rules! dma_section {
    ([$($rest:ident)*] { $($done:tt)* }) => {
        next_section! { [$($rest)*] { $($done)*

            /// Copies from DRAM to SBUF by DMA, converting by way of f32 where dtypes differ.
            ///
            /// ```bir
            /// load %t <- %x[128*%i +: 128, 0:512]
            /// ```
            Load = "load": "DMA from DRAM to SBUF" {
                operands {
                    dst = out(SBUF, ANY).doc("tile written");
                    src = input(DRAM, ANY).doc("tensor read; as many elements as `dst`");
                }
                attrs {
                    dge = optional(Enum(&DGE_MODES)).default("none").doc("who makes the descriptors");
                    queue = optional(Str).doc("DMA queue that carries it");
                    priority = optional(Int { min: 0, max: 3 }).doc("0 first; from `trn3` on");
                }
                rules .engines(&[Dma]).traits_of(&[Trait::Dma]).check(checks::dma)
            }

            /// Copies from SBUF to DRAM by DMA, converting by way of f32 where dtypes differ.
            ///
            /// ```bir
            /// save %y[128*%i +: 128, 0:512] <- %t
            /// ```
            Save = "save": "DMA from SBUF to DRAM" {
                operands {
                    dst = out(DRAM, ANY).doc("tensor written");
                    src = input(SBUF, ANY).doc("tile read; as many elements as `dst`");
                }
                attrs {
                    dge = optional(Enum(&DGE_MODES)).default("none").doc("who makes the descriptors");
                    queue = optional(Str).doc("DMA queue that carries it");
                    priority = optional(Int { min: 0, max: 3 }).doc("0 first; from `trn3` on");
                }
                rules .engines(&[Dma]).traits_of(&[Trait::Dma]).check(checks::dma)
            }

            /// Copies between any two of DRAM and SBUF by DMA, converting by way of f32 where dtypes differ.
            /// With `src_index` it gathers: row `r` of `dst` is the row of dimension 0 of `src` that
            /// `src_index` names for partition `r`; with `dst_index` it scatters. `src_offset` and
            /// `dst_offset` add a register's value, in elements, to where a side starts.
            ///
            /// ```bir
            /// dma_copy %t <- %table, src_index %rows {dge = swdge, oob = skip}
            /// ```
            DmaCopy = "dma_copy": "DMA between DRAM and SBUF" {
                operands {
                    dst = out(DMA_SPACES, ANY).doc("memory written");
                    src = input(DMA_SPACES, ANY).doc("memory read; as many elements as `dst`");
                    src_index = input(SBUF, INDEX_DTYPES).opt().key("src_index").doc("rows of `src` to read, one per partition");
                    dst_index = input(SBUF, INDEX_DTYPES).opt().key("dst_index").doc("rows of `dst` to write, one per partition");
                    src_offset = reg().opt().key("src_offset").doc("elements added to the offset of `src`");
                    dst_offset = reg().opt().key("dst_offset").doc("elements added to the offset of `dst`");
                }
                attrs {
                    dge = optional(Enum(&DGE_MODES)).default("none").doc("who makes the descriptors");
                    queue = optional(Str).doc("DMA queue that carries it");
                    priority = optional(Int { min: 0, max: 3 }).doc("0 first; from `trn3` on");
                    oob = optional(Enum(&OOB_MODES)).default("error").doc("what an index or offset outside the location does");
                    unique_indices = optional(Flag).doc("no index occurs twice");
                }
                rules .engines(&[Dma]).traits_of(&[Trait::Dma, Trait::Dynamic, Trait::InPlace]).check(checks::dma_copy)
            }

            /// Transposes by DMA: dimensions are reversed for 2 and 3, and ordered (3, 1, 2, 0) for 4. The
            /// dimensions of `src` are those of its access, the last two exchanged being its first and last.
            ///
            /// ```bir
            /// dma_transpose %t <- %x
            /// ```
            DmaTranspose = "dma_transpose": "DMA with a transposition" {
                operands {
                    dst = out(SBUF, ANY).doc("transposed tile");
                    src = input(DMA_SPACES, ANY).doc("memory read");
                    src_index = input(SBUF, INDEX_DTYPES).opt().key("src_index").doc("rows of `src` to read, in column-major order");
                }
                attrs {
                    dge = optional(Enum(&DGE_MODES)).default("none").doc("who makes the descriptors");
                    queue = optional(Str).doc("DMA queue that carries it");
                    priority = optional(Int { min: 0, max: 3 }).doc("0 first; from `trn3` on");
                }
                rules .engines(&[Dma]).traits_of(&[Trait::Dma, Trait::Dynamic]).same_dtype(&["dst", "src"]).check(checks::dma_transpose)
            }

            /// Adds memory by DMA: `dst` is the sum of its sources in f32, converted. Up to 16 sources.
            ///
            /// ```bir
            /// dma_compute add %y <- %a, %b, %c
            /// ```
            DmaCompute = "dma_compute": "DMA that adds" {
                operands {
                    dst = out(DMA_SPACES, NUMERIC).doc("memory written");
                    srcs = input(DMA_SPACES, NUMERIC).variadic().doc("memory read; as many elements as `dst`");
                }
                attrs {
                    op = required(Enum(&ALU_OPS)).doc("`add`");
                    dge = optional(Enum(&DGE_MODES)).default("none").doc("who makes the descriptors");
                    queue = optional(Str).doc("DMA queue that carries it");
                    priority = optional(Int { min: 0, max: 3 }).doc("0 first; from `trn3` on");
                }
                rules .words(&["op"]).engines(&[Dma]).traits_of(&[Trait::Dma, Trait::InPlace]).check(checks::dma_compute)
            }

            /// Adds rows to rows that an index tile names: `dst[index_r] += src[r]`. No index occurs twice.
            ///
            /// ```bir
            /// dma_scatter_add %table <- %t, %rows {dge = swdge}
            /// ```
            DmaScatterAdd = "dma_scatter_add": "DMA that adds to rows by number" {
                operands {
                    dst = inout(DRAM, NUMERIC).doc("tensor whose rows are added to");
                    src = input(SBUF, NUMERIC).doc("rows added");
                    index = input(SBUF, INDEX_DTYPES).doc("rows of `dst`, one per partition");
                }
                attrs {
                    dge = optional(Enum(&DGE_MODES)).default("none").doc("who makes the descriptors");
                    queue = optional(Str).doc("DMA queue that carries it");
                    priority = optional(Int { min: 0, max: 3 }).doc("0 first; from `trn3` on");
                    oob = optional(Enum(&OOB_MODES)).default("error").doc("what an index outside the location does");
                }
                rules .engines(&[Dma]).traits_of(&[Trait::Dma, Trait::Dynamic]).check(checks::dma_indexed)
            }

            /// Adds rows that an index tile names: `dst[r] += src[index_r]`.
            ///
            /// ```bir
            /// dma_gather_add %t <- %table, %rows {dge = swdge}
            /// ```
            DmaGatherAdd = "dma_gather_add": "DMA that adds rows by number" {
                operands {
                    dst = inout(SBUF, NUMERIC).doc("tile added to");
                    src = input(DRAM, NUMERIC).doc("tensor whose rows are added");
                    index = input(SBUF, INDEX_DTYPES).doc("rows of `src`, one per partition");
                }
                attrs {
                    dge = optional(Enum(&DGE_MODES)).default("none").doc("who makes the descriptors");
                    queue = optional(Str).doc("DMA queue that carries it");
                    priority = optional(Int { min: 0, max: 3 }).doc("0 first; from `trn3` on");
                    oob = optional(Enum(&OOB_MODES)).default("error").doc("what an index outside the location does");
                }
                rules .engines(&[Dma]).traits_of(&[Trait::Dma, Trait::Dynamic]).check(checks::dma_indexed)
            }

            /// Copies SBUF to SBUF through the pool engine's own DMA, of this core or to the peer's location
            /// named by `remote_target` of `dst`. Bits are moved, never converted.
            ///
            /// ```bir
            /// gpsimd_sb2sb %d <- %t
            /// ```
            GpsimdSb2sb = "gpsimd_sb2sb": "SBUF to SBUF by the pool engine" {
                operands {
                    dst = out(SBUF, ANY).any_partitions().doc("tile written");
                    src = input(SBUF, ANY).any_partitions().doc("tile read");
                }
                rules .engines_by_target(&[], &[Pool], &[Pool]).traits_of(&[Trait::Dma, Trait::Observable, Trait::InPlace])
                    .same_dtype(&["dst", "src"]).same_shape(&["dst", "src"]).check(checks::gpsimd_sb2sb)
            }
        } }
    };
}
