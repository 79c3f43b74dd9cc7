//! What the verifier would have refused, and `--no-verify` lets through: answered, never a panic.

use crate::common::unverified;

/// Locations the instructions below use.
const LOCATIONS: &str = "%x = alloc dram<4x8xf32>\n%x2 = alloc dram<4x8xf16>\n%xl = alloc dram<1x2x2x2x4xf32>\n\
    %a = alloc sbuf<4x8xf32>\n%b = alloc sbuf<4x6xf32>\n%c = alloc sbuf<8x8xf32>\n%s = alloc sbuf<4x2xf32>\n\
    %one = alloc sbuf<4x1xf32>\n%big = alloc sbuf<200x8xf32>\n%w = alloc sbuf<4x8xf16>\n%u = alloc sbuf<4x8xu32>\n\
    %h = alloc sbuf<4x8xu16>\n%r = alloc sbuf<1x8xf32>\n%rh = alloc sbuf<1x8xu16>\n%m = alloc sbuf<2x1xu32>\n\
    %q = alloc sbuf<32x2xf8e5m2_x4>\n%q6 = alloc sbuf<6x2xf8e5m2_x4>\n%g = alloc sbuf<32x2xu8>\n%p = alloc psum<2x2xf32>\n\
    %p1 = alloc psum<1x2xf32>\n%k = alloc sbuf<32x8xbf16>\n%m2 = alloc sbuf<2x1xf32>\n\
    %u8 = alloc sbuf<4x8xu8>\n%ht = alloc sbuf<8x4xf16>";

/// The message a run of one instruction ends with.
fn refused(instruction: &str) -> String {
    let ir = unverified(&format!("{LOCATIONS}\n{instruction}"));
    match bir_sim::run(&ir, &Default::default()) {
        Ok(_) => panic!("the run went well: {instruction}"),
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn shapes_and_words_no_instruction_has() {
    let mask = |first: usize| {
        let mut mask = [0; 32];
        mask[0] = first;
        format!("{{mask = {mask:?}}}")
    };
    let cases: Vec<(String, &str)> = [
        ("exponential %big <- %big", "a tile of 200 partitions"),
        ("exponential %a <- %b", "`dst` and `src` differ in shape"),
        ("activation tanh %a, reduce %a <- %a", "a result is not one element per partition"),
        ("activation tanh %a, reduce %one <- %a, bias %s", "a scalar is not one element per partition"),
        ("activation tanh %a, reduce %one <- %a, bias %m2", "a scalar is not one element per partition"),
        ("activation_reduce tanh %a, %s <- %a", "a result is not one element per partition"),
        ("read_activation_accumulator %c", "a result is not one element per partition"),
        ("exponential %a <- %a, max %s", "a scalar is not one element per partition"),
        ("activate2 copy add bypass %a <- %a", "operand `operand0` is missing"),
        ("tensor_scalar_reduce bitwise_and %a <- %a, 1.0", "bit operations and arithmetic do not mix"),
        ("tensor_scalar_cumulative add add %a <- %b, 1.0", "`dst` and `src` differ in shape"),
        ("tensor_scalar_cumulative add bitwise_or %a <- %a, 1.0", "bit operations and arithmetic do not mix"),
        ("tensor_scalar_cache add %a <- %b, 1.0", "`dst` and `src` differ in shape"),
        ("tensor_scalar_cache add %a <- %a", "operand `operand0` is missing"),
        ("stream_shuffle %a <- %a {mask = [0, 1]}", "`mask` is not 32 numbers"),
        ("permute_implicit_reduce_add %a <- %a {mask = [0]}", "`mask` is not 32 numbers"),
        ("tensor_partition_reduce min %r <- %a", "no operation that reduces over partitions"),
        ("tensor_partition_reduce add %a <- %a", "`dst` is not one row of `src`"),
        ("tensor_partition_reduce bitwise_or %rh <- %u", "bit operations take integers of one width"),
        ("find_index8 %u <- %a, %b", "its operands differ in shape"),
        ("match_replace8 %a <- %a, %b, 0.0", "its operands differ in shape"),
        ("match_replace8 %a, %m <- %a, %a, 0.0", "its operands differ in shape"),
        ("match_replace8 %b <- %a, %a, 0.0", "`dst` and `src` differ in shape"),
        ("topk %h, %u <- %h {k = 8}", "`k` and the shapes of its operands disagree"),
        ("tensor_gather %a <- %c, index %u", "the shapes of its operands disagree"),
        ("tensor_scatter %a <- %c, index %u", "the shapes of its operands disagree"),
        ("local_gather %a <- %a, %h {count = 8}", "the shapes of its operands disagree"),
        ("n_gather %a <- %c, %u", "the shapes of its operands disagree"),
        ("sequence_bounds %r <- %r", "`dst` is not one row of twice the elements"),
        ("nonzero_with_count %u <- %a", "`dst` has not one element more than `src`"),
        ("rng %a", "random bits are integers"),
        ("rand2 %a <- %s, 1.0", "a scalar is not one element per partition"),
        ("dropout %w <- %a, 0.5", "`dst` and `src` differ in shape or dtype"),
        ("set_rng_seed <- %u", "the seed is not one element"),
        ("rand_set_state <- %u {engine = pool}", "the state of a lane of `pool` is 6 words"),
        ("rand_get_state %u {engine = dve}", "the state of a lane of `dve` is 24 words"),
        ("dma_compute max %a <- %a", "a DMA only adds"),
        ("dma_compute add %a <- %b", "its operands differ in how many elements they have"),
        ("dma_transpose %w <- %a", "`dst` and `src` differ in dtype"),
        ("dma_transpose %a <- %xl", "`src` has not 2 to 4 dimensions"),
        ("dma_transpose %a <- %x", "`dst` is not of the transposed shape"),
        ("dma_transpose %c[:, 0:4] <- %x, src_index %m", "`src_index` has fewer numbers than `src` has rows"),
        ("dma_transpose %c[:, 0:4] <- %a, src_index %u", "a table of rows is in `dram`"),
        ("dma_gather_add %b <- %x, %u", "rows of the table and partitions of the tile differ"),
        ("dma_scatter_add %x <- %c, %m", "rows of the table and partitions of the tile differ"),
        ("quantize_mx %q6, %g[0:6, :] <- %k[0:6, :]", "the shapes of its operands disagree"),
        (
            "matmult_mx %p <- stationary %q, stationary_scale %g[0:3, :], moving %q, moving_scale %g",
            "scales have too few partitions or elements",
        ),
        (
            "matmult_mx %p1 <- stationary %q, stationary_scale %g, moving %q, moving_scale %g",
            "the shapes of its operands disagree",
        ),
        (
            "matmult_sparse %p1 <- stationary %a, moving %a, tags %h {ratio = 2}",
            "the shapes of its operands disagree",
        ),
        ("all_reduce add %a <- %b {groups = [[0]]}", "its destinations and sources differ"),
        ("all_gather %w <- %a {groups = [[0]]}", "`dst` and `src` differ in dtype"),
        ("all_gather %a <- %c {groups = [[0]], dim = 1}", "`dst` and `src` differ in partitions"),
        ("all_gather %a <- %b {groups = [[0]]}", "`dst` is not 1 times as large as `src`"),
        ("all_to_all %a <- %b {groups = [[0]]}", "`dst` and `src` differ in shape"),
        ("sendrecv %a <- %b {send_to = 0, recv_from = 0}", "`dst` and `src` differ in shape"),
        (
            "collective_permute_implicit_reduce add %a <- %a, %b {groups = [[0]]}",
            "its operands differ in shape",
        ),
        (
            "all_to_all_v %a, %u <- %a {groups = [[0]]}",
            "`metadata` of 32 numbers is not three or four rows of 1",
        ),
    ]
    .into_iter()
    .map(|(text, message)| (text.to_owned(), message))
    .chain([
        (
            format!("stream_shuffle %a <- %a {}", mask(4)),
            "row 0 of `dst` is row 4 of `src`, which has 4",
        ),
        (
            format!("stream_shuffle %a <- %b {}", mask(0)),
            "`dst` and `src` differ in their rows",
        ),
        (
            format!("permute_implicit_reduce_add %a <- %a {}", mask(4)),
            "row 0 of `src` goes to row 4 of `dst`, which has 4",
        ),
        (
            format!("permute_implicit_reduce_add %a <- %b {}", mask(0)),
            "its operands differ in shape",
        ),
    ])
    .collect();
    for (instruction, message) in cases {
        // Some are refused when they run, and read these.
        let found = refused(&format!(
            "memset %a <- 0.0\nmemset %b <- 0.0\n{instruction}"
        ));
        let op = instruction.split(' ').next().expect("a name");
        assert_eq!(
            found,
            format!("`{op}` cannot be simulated: {message}"),
            "{instruction}"
        );
    }
}
