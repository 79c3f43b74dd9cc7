//! Gathers, sequences and random numbers.

macro_rules! generation_section {
    ([$($rest:ident)*] { $($done:tt)* }) => {
        next_section! { [$($rest)*] { $($done)*

            /// Gathers along rows with one list of positions per group of 16 partitions: the list is the
            /// index tile of the group read column by column; the first `count` positions are used.
            /// `dst[p, j * width + e] = src[p, position_j + e]`.
            ///
            /// ```bir
            /// local_gather %d <- %t, %positions {count = 64, width = 4}
            /// ```
            LocalGather = "local_gather": "gather along rows, 16 partitions alike" {
                operands {
                    dst = out(SBUF, ANY).doc("`count * width` elements per partition");
                    src = input(SBUF, ANY).doc("rows read; a multiple of 16 partitions");
                    index = input(SBUF, DTypeSet::of(&[DType::U16])).doc("positions, as many partitions as `src`");
                }
                attrs {
                    count = required(Int { min: 1, max: 4096 }).doc("positions used per 16 partitions");
                    width = optional(Int { min: 1, max: 32 }).default("1").doc("neighbouring elements per position: 1, 2, 4, 8, 16 or 32");
                }
                rules .engines(&[Pool]).traits_of(&[Trait::Dynamic]).same_dtype(&["dst", "src"]).check(checks::local_gather)
            }

            /// Gathers along rows, each element from a position of its own: `dst[p, i] = src[p, index[p, i]]`.
            ///
            /// ```bir
            /// n_gather %d <- %t, %positions
            /// ```
            NGather = "n_gather": "gather along rows" {
                operands {
                    dst = out(SBUF, ANY).doc("elements read");
                    src = input(SBUF, ANY).doc("rows read");
                    index = input(SBUF, DTypeSet::of(&[DType::U32])).doc("positions, of the shape of `dst`");
                }
                rules .engines(&[Pool]).traits_of(&[Trait::Dynamic]).same_dtype(&["dst", "src"]).same_shape(&["dst", "index"])
                    .check(checks::n_gather)
            }

            /// Start and end of the run of equal neighbours each element is in: `dst` holds all starts, then
            /// all ends (one past the last). Elements equal to 0 are padding and get (n, -1).
            ///
            /// ```bir
            /// sequence_bounds %bounds <- %ids
            /// ```
            SequenceBounds = "sequence_bounds": "bounds of runs of equal elements" {
                operands {
                    dst = out(SBUF, DTypeSet::of(&[DType::F32, DType::I32])).doc("one partition of 2 n elements");
                    src = input(SBUF, DTypeSet::of(&[DType::F32, DType::I32])).doc("one partition of n elements");
                }
                rules .engines(&[Pool]).same_dtype(&["dst", "src"]).check(checks::sequence_bounds)
            }

            /// The positions of the elements that are not zero, then padding, then their number, in
            /// partitions 0, 16, … 112 of the tile; other partitions stay as they are.
            ///
            /// ```bir
            /// nonzero_with_count %where <- %t {offset = 16, padding = -1}
            /// ```
            NonzeroWithCount = "nonzero_with_count": "positions and number of the nonzero elements" {
                operands {
                    dst = inout(SBUF, DTypeSet::of(&[DType::I32])).doc("one element more per partition than `src`");
                    src = input(SBUF, DTypeSet::of(&[DType::F32, DType::I32])).doc("values");
                }
                attrs {
                    offset = optional(Int { min: i32::MIN as i64, max: i32::MAX as i64 }).default("0").doc("added to every position");
                    padding = optional(Int { min: i32::MIN as i64, max: i32::MAX as i64 }).default("-1").doc("fills what the positions leave");
                }
                rules .engines_by_target(&[], &[Pool], &[Pool]).check(checks::nonzero_with_count)
            }

            /// Fills a tile with the low bits of the engine's random numbers, in traversal order. Every lane
            /// has an xorwow generator of its own; the vector engine of `trn3` has four, which serve the
            /// elements of a row in turn. Before a seed is set the numbers are those of seed 0.
            ///
            /// ```bir
            /// rng %t
            /// ```
            Rng = "rng": "random integers" {
                operands {
                    dst = out(CHIP, INTS).doc("tile filled");
                }
                rules .engines_by_target(&[Dve], &[Dve, Pool], &[Dve, Pool]).traits_of(&[Trait::HiddenState])
            }

            /// Fills a tile with uniform random numbers from `low` to `high`: `low + u * (high - low)` with
            /// `u` the upper 24 bits of a random word. An empty range is an error of the run.
            ///
            /// ```bir
            /// rand2 %t <- 0.0, 1.0
            /// ```
            Rand2 = "rand2": "uniform random numbers" {
                operands {
                    dst = out(CHIP, NUMERIC).doc("tile filled");
                    low = imm(ImmType::F32, CHIP, F32).doc("smallest: a number or one f32 per partition");
                    high = imm(ImmType::F32, CHIP, F32).doc("end of the range: a number or one f32 per partition");
                }
                rules .engines_by_target(&[], &[], &[Dve]).traits_of(&[Trait::HiddenState])
                    .per_partition(&["low", "high"]).check(checks::rand2)
            }

            /// Seeds the vector engine's random numbers: generator `g` of lane `l` starts from
            /// `seed ^ ((l + 128 g) * 0x9E3779B9)`.
            ///
            /// ```bir
            /// set_rng_seed <- %seed[0:1, 0:1]
            /// ```
            SetRngSeed = "set_rng_seed": "seed the random numbers" {
                operands {
                    src = input(CHIP, DTypeSet::of(&[DType::I32, DType::U32, DType::F32])).doc("one 32-bit element");
                }
                rules .engines(&[Dve]).traits_of(&[Trait::HiddenState, Trait::MustKeep]).check(checks::set_rng_seed)
            }

            /// Sets the state of the engine's random numbers, per partition: 6 words on `pool`, 24 on `dve`.
            ///
            /// ```bir
            /// rand_set_state <- %state
            /// ```
            RandSetState = "rand_set_state": "set the random state" {
                operands {
                    src = input(SBUF, DTypeSet::of(&[DType::U32])).doc("6 or 24 words per partition");
                }
                rules .engines_by_target(&[], &[Pool], &[Pool, Dve]).traits_of(&[Trait::HiddenState, Trait::MustKeep])
                    .check(checks::rand_state)
            }

            /// Reads the state of the engine's random numbers, per partition: 6 words on `pool`, 24 on `dve`.
            ///
            /// ```bir
            /// rand_get_state %state
            /// ```
            RandGetState = "rand_get_state": "read the random state" {
                operands {
                    dst = out(CHIP, DTypeSet::of(&[DType::U32])).doc("6 or 24 words per partition");
                }
                rules .engines_by_target(&[], &[Pool], &[Pool, Dve]).traits_of(&[Trait::HiddenState]).check(checks::rand_state)
            }
        } }
    };
}
