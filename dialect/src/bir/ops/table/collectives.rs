//! Exchange between cores and devices.

macro_rules! collectives_section {
    ([$($rest:ident)*] { $($done:tt)* }) => {
        next_section! { [$($rest)*] { $($done)*

            /// Combines the buffers of all ranks of a group, element by element, in f32 and in the order of
            /// ascending ranks; every rank gets the result.
            ///
            /// ```bir
            /// all_reduce add %y <- %x {groups = [[0, 1, 2, 3]]}
            /// ```
            AllReduce = "all_reduce": "combine the ranks' buffers, everywhere" {
                operands {
                    dsts = out(DMA_SPACES, NUMERIC).variadic().doc("results, one per source");
                    srcs = input(DMA_SPACES, NUMERIC).variadic().doc("buffers combined; several only in DRAM");
                }
                attrs {
                    op = required(Enum(&COLLECTIVE_OPS)).doc("how elements are combined");
                    groups = required(AttrType::RankGroups).doc("ranks of each group");
                }
                rules .words(&["op"]).engines(&[Dma]).traits_of(COLLECTIVE).traits_of(&[Trait::InPlace]).check(checks::all_reduce)
            }

            /// Concatenates the buffers of all ranks of a group along a dimension; every rank gets the whole.
            ///
            /// ```bir
            /// all_gather %y <- %x {groups = [[0, 1]]}
            /// ```
            AllGather = "all_gather": "concatenate the ranks' buffers, everywhere" {
                operands {
                    dst = out(DMA_SPACES, ANY).doc("as many times larger than `src` as a group has ranks");
                    src = input(DMA_SPACES, ANY).doc("this rank's part");
                }
                attrs {
                    groups = required(AttrType::RankGroups).doc("ranks of each group");
                    dim = optional(Int { min: 0, max: 1 }).default("0").doc("dimension concatenated; 1 only in SBUF");
                }
                rules .engines(&[Dma]).traits_of(COLLECTIVE).same_dtype(&["dst", "src"]).check(checks::all_gather)
            }

            /// Concatenates parts of different sizes. `metadata` holds rows of one number per rank of the
            /// group: elements sent to it, where they start in `src`, elements received from it (written
            /// back), and optionally where those go in `dst`; without, each rank has an equal slot.
            ///
            /// ```bir
            /// all_gather_v %y, %counts <- %x {groups = [[0, 1]]}
            /// ```
            AllGatherV = "all_gather_v": "concatenate parts of different sizes" {
                operands {
                    dst = inout(DRAM, ANY).doc("the parts, each in its slot; the rest stays");
                    metadata = inout(DRAM, DTypeSet::of(&[DType::U32])).doc("rows of counts and displacements");
                    src = input(DRAM, ANY).doc("this rank's part");
                }
                attrs {
                    groups = required(AttrType::RankGroups).doc("ranks of each group");
                }
                rules .engines(&[Dma]).traits_of(COLLECTIVE).same_dtype(&["dst", "src"]).check(checks::collective)
            }

            /// Combines the buffers of all ranks of a group; each rank gets its part of dimension 0.
            ///
            /// ```bir
            /// reduce_scatter add %y <- %x {groups = [[0, 1]]}
            /// ```
            ReduceScatter = "reduce_scatter": "combine the ranks' buffers, each its part" {
                operands {
                    dst = out(DMA_SPACES, NUMERIC).doc("this rank's part of the result");
                    src = input(DMA_SPACES, NUMERIC).doc("as many times larger than `dst` as a group has ranks");
                }
                attrs {
                    op = required(Enum(&COLLECTIVE_OPS)).doc("how elements are combined");
                    groups = required(AttrType::RankGroups).doc("ranks of each group");
                }
                rules .words(&["op"]).engines(&[Dma]).traits_of(COLLECTIVE).same_dtype(&["dst", "src"]).check(checks::reduce_scatter)
            }

            /// Sends part `r` of dimension 0 to rank `r` of the group.
            ///
            /// ```bir
            /// all_to_all %y <- %x {groups = [[0, 1]]}
            /// ```
            AllToAll = "all_to_all": "exchange parts between all ranks" {
                operands {
                    dst = out(DRAM, ANY).doc("the parts received, in rank order");
                    src = input(DRAM, ANY).doc("the parts sent, in rank order");
                }
                attrs {
                    groups = required(AttrType::RankGroups).doc("ranks of each group");
                }
                rules .engines(&[Dma]).traits_of(COLLECTIVE).same_dtype(&["dst", "src"]).same_shape(&["dst", "src"]).check(checks::collective)
            }

            /// Exchanges parts of different sizes, as the `metadata` say; see `all_gather_v`.
            ///
            /// ```bir
            /// all_to_all_v %y, %counts <- %x {groups = [[0, 1]]}
            /// ```
            AllToAllV = "all_to_all_v": "exchange parts of different sizes" {
                operands {
                    dst = inout(DRAM, ANY).doc("the parts received, each in its slot; the rest stays");
                    metadata = inout(DRAM, DTypeSet::of(&[DType::U32])).doc("rows of counts and displacements");
                    src = input(DRAM, ANY).doc("the parts sent");
                }
                attrs {
                    groups = required(AttrType::RankGroups).doc("ranks of each group");
                }
                rules .engines(&[Dma]).traits_of(COLLECTIVE).same_dtype(&["dst", "src"]).check(checks::collective)
            }

            /// Sends the buffer of each source rank to its target rank. A rank that is no target keeps what
            /// `dst` held.
            ///
            /// ```bir
            /// collective_permute %y <- %x {pairs = [[0, 1], [1, 0]]}
            /// ```
            CollectivePermute = "collective_permute": "send between pairs of ranks" {
                operands {
                    dst = inout(DRAM, ANY).doc("the buffer received");
                    src = input(DRAM, ANY).doc("the buffer sent");
                }
                attrs {
                    pairs = required(AttrType::RankGroups).doc("`[source, target]` ranks");
                }
                rules .engines(&[Dma]).traits_of(COLLECTIVE).same_dtype(&["dst", "src"]).same_shape(&["dst", "src"]).check(checks::collective_permute)
            }

            /// Sends each channel's buffer to the next rank of the group's ring and receives from the one
            /// before.
            ///
            /// ```bir
            /// collective_permute_implicit %y <- %x {groups = [[0, 1, 2, 3]]}
            /// ```
            CollectivePermuteImplicit = "collective_permute_implicit": "send around a ring" {
                operands {
                    dsts = out(DRAM, ANY).variadic().doc("buffers received, one per channel");
                    srcs = input(DRAM, ANY).variadic().doc("buffers sent, one per channel");
                }
                attrs {
                    groups = required(AttrType::RankGroups).doc("ranks of each ring");
                }
                rules .engines(&[Dma]).traits_of(COLLECTIVE).check(checks::collective_permute_implicit)
            }

            /// Combines two buffers and sends the result to the next rank of the group's ring.
            ///
            /// ```bir
            /// collective_permute_implicit_reduce add %y <- %a, %b {groups = [[0, 1, 2, 3]]}
            /// ```
            CollectivePermuteImplicitReduce = "collective_permute_implicit_reduce": "combine and send around a ring" {
                operands {
                    dst = out(DRAM, NUMERIC).doc("the result received");
                    lhs = input(DRAM, NUMERIC).doc("left values");
                    rhs = input(DRAM, NUMERIC).doc("right values");
                }
                attrs {
                    op = required(Enum(&COLLECTIVE_OPS)).doc("how elements are combined");
                    groups = required(AttrType::RankGroups).doc("ranks of each ring");
                }
                rules .words(&["op"]).engines(&[Dma]).traits_of(COLLECTIVE).same_dtype(&["dst", "lhs", "rhs"])
                    .same_shape(&["dst", "lhs", "rhs"]).check(checks::collective)
            }

            /// Exchanges tiles between the two cores of a program, both ways at once.
            ///
            /// ```bir
            /// sendrecv %d <- %t {send_to = 1, recv_from = 1, pipe_id = 0}
            /// ```
            Sendrecv = "sendrecv": "exchange tiles between two cores" {
                operands {
                    dst = out(SBUF, ANY).doc("tile received");
                    src = input(SBUF, ANY).doc("tile sent");
                }
                attrs {
                    send_to = required(Int { min: 0, max: 1 }).doc("core that receives `src`");
                    recv_from = required(Int { min: 0, max: 1 }).doc("core that sends `dst`");
                    pipe_id = optional(Int { min: 0, max: 255 }).default("0").doc("exchanges of one pipe complete together");
                }
                rules .engines_by_target(&[], &[Dma, Pool], &[Dma, Pool]).traits_of(COLLECTIVE)
                    .same_dtype(&["dst", "src"]).same_shape(&["dst", "src"]).check(checks::sendrecv)
            }

            /// The rank of this core in the program's world: the number of the core.
            ///
            /// ```bir
            /// %rank = rank_id
            /// ```
            RankId = "rank_id": "own rank" {
                operands {
                    dst = reg_out().opt().doc("register written, where the instruction defines none");
                }
                rules .engines(&[Sp, Act, Dve, Pe, Pool]).with_result()
            }

            /// The rank whose data a ring of `collective_permute_implicit` has brought in iteration `iter`:
            /// own rank at 0, then its predecessors.
            ///
            /// ```bir
            /// %from = processing_rank_id <- 1 {groups = [[0, 1, 2, 3]]}
            /// ```
            ProcessingRankId = "processing_rank_id": "rank whose data a ring has brought" {
                operands {
                    dst = reg_out().opt().doc("register written, where the instruction defines none");
                    iter = reg_imm().doc("iteration of the ring");
                }
                attrs {
                    groups = required(AttrType::RankGroups).doc("ranks of each ring");
                }
                rules .engines(&[Sp, Act, Dve, Pe, Pool]).with_result()
            }

            /// The number of this core among the cores of the program.
            ///
            /// ```bir
            /// %core = core_id
            /// ```
            CoreId = "core_id": "own core" {
                operands {
                    dst = reg_out().opt().doc("register written, where the instruction defines none");
                }
                rules .engines(&[Sp, Act, Dve, Pe, Pool]).with_result()
            }
        } }
    };
}
