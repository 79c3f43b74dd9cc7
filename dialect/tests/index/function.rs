//! The index of whole functions, from text.

use bir_dialect::analysis::index::{Frames, FunctionIndex, Gap, Interval, Live};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::new_ir;
use bir_dialect::bir::space::Space;
use bir_dialect::bir::verify::Level;
use bir_dialect::ir::{Ir, Op, Value};
use bir_dialect::text::diag::Diagnostics;
use bir_dialect::text::{ParseOptions, parse};

pub(crate) fn read(body: &str) -> (Ir, Op) {
    let text = format!("bir.module @m {{\n bir.func @f {{\n{body}\n }}\n}}\n");
    let ir = bir_dialect::read(&text, Level::Off).unwrap();
    let func = ir
        .walk()
        .ops()
        .find(|&op| OpCode::of(&ir, op) == Some(OpCode::Func));
    (ir, func.unwrap())
}

fn index(body: &str) -> (Ir, FunctionIndex) {
    let (ir, func) = read(body);
    let index = FunctionIndex::build(&ir, func, Frames::Locations);
    (ir, index)
}

pub(crate) fn name(ir: &Ir, value: Value) -> &str {
    ir.value_name(value).map_or("", |name| ir.ctx.text(name))
}

/// `location: gaps` of every undefined read.
fn undefined(body: &str) -> Vec<String> {
    let (ir, index) = index(body);
    let show = |gap: &Gap| {
        let (p, b) = (gap.partitions, gap.bytes);
        format!("{}:{} x {}:{}", p.0, p.1, b.0, b.1)
    };
    let reads = index.undefined_reads();
    reads
        .iter()
        .map(|read| {
            let gaps: Vec<String> = read.gaps.iter().map(show).collect();
            format!("{} {}", name(&ir, read.value), gaps.join(", "))
        })
        .collect()
}

/// Instruction numbers of the writes that reach each read of a location, in order.
fn reaching(body: &str, location: &str) -> Vec<Vec<u32>> {
    let (ir, index) = index(body);
    let touches = index.touches();
    (0u32..)
        .zip(touches)
        .filter(|(_, touch)| {
            let value = index.locations()[touch.location as usize].value;
            touch.effect.is_read() && name(&ir, value) == location
        })
        .map(|(at, _)| {
            let (found, _) = index.reaching(at);
            let mut orders: Vec<u32> = found.iter().map(|&w| touches[w as usize].order).collect();
            orders.dedup();
            orders
        })
        .collect()
}

#[test]
fn every_undefined_read_names_what_is_missing() {
    let body = "
        %x = alloc dram<128x512xf32> {kind = input}
        %a = alloc sbuf<128x512xf32>
        %b = alloc sbuf<128x512xf32>
        load %a[0:64, 0:512] <- %x[0:64, 0:512]
        tensor_copy %b <- %a
        tensor_copy %b[0:128, 0:256] <- %b[0:128, 256:512]
        %c = alloc sbuf<128x512xf32>
        tensor_copy %b <- %c
        memset %c[0:128, ::2] <- 0.0
        memset %c[0:128, 1:511:2] <- 0.0
        tensor_copy %b <- %c";
    assert_eq!(
        undefined(body),
        [
            "a 64:128 x 0:2048",
            "c 0:128 x 0:2048",
            "c 0:128 x 2044:2048"
        ]
    );
}

#[test]
fn an_access_by_a_register_is_not_undefined_where_the_location_ends() {
    // Every fourth of 17 elements: five times four would be 20, three of which nobody can write.
    let body = "
        %n = alloc dram<1x1xi32> {kind = input}
        %a = alloc sbuf<1x17xi32>
        %b = alloc sbuf<1x2xi32>
        %p = alloc psum<1x2xf32>
        %r = register_load <- %n
        memset %a <- 0
        memset %b <- 0
        tensor_copy_dynamic_dst %a[:, 0:2] <- %b, offset %r
        tensor_copy_dynamic_src %b <- %a[:, 0:2], offset %r
        tensor_copy %p <- %a[p 0:1, off 0, 4 x 2, 1 x 1]
        memset %a[:, 2:5:2] <- 1";
    let (ir, index) = index(body);
    let reads = (0u32..)
        .zip(index.touches())
        .filter(|(_, touch)| touch.dynamic && touch.effect.is_read());
    let mut count = 0;
    for (at, touch) in reads {
        let (writers, origin) = index.reaching(at);
        assert!(
            !origin.undefined && !origin.outside,
            "{}",
            ir.name_text(touch.op)
        );
        assert!(!writers.is_empty());
        count += 1;
    }
    assert_eq!(count, 2);
}

#[test]
fn reinterpreted_and_aliased_bytes_are_the_same_bytes() {
    let body = "
        %a = alloc sbuf<64x8xf32>
        %b = alloc sbuf<64x8xf32> {must_alias = @a}
        %o = alloc sbuf<64x8xi32>
        memset %a as i32[0:64, 0:4] <- 0
        tensor_copy %o <- %b as i32[0:64, 0:8]";
    assert_eq!(undefined(body), ["b 0:64 x 16:32"]);
}

#[test]
fn a_loop_defines_slice_by_slice() {
    let body = "
        %x = alloc dram<128x512xf32> {kind = input}
        %a = alloc sbuf<128x512xf32>
        %b = alloc sbuf<128x512xf32>
        loop %i = 0 to 4 step 1 {
          load %a[0:128, 128*%i +: 128] <- %x[0:128, 128*%i +: 128]
          tensor_copy %b[0:128, 128*%i +: 128] <- %a[0:128, 128*%i +: 128]
        }
        tensor_copy %b <- %a";
    assert!(undefined(body).is_empty());
    // Three of four slices.
    let short = body.replace("to 4", "to 3");
    assert_eq!(undefined(&short), ["a 0:128 x 1536:2048"]);
}

#[test]
fn what_a_loop_moves_blurs_its_own_bytes_only() {
    let body = "%y = alloc dram<1x16xf32> {kind = output}\n%t = alloc sbuf<1x16xf32>\nloop %i = 0 to 4 {\n\
                memset %t <- 1.0\nmemset %t <- 2.0\nmemset %t[:, %i + 8] <- 3.0\n}\n\
                save %y[:, 0:8] <- %t[:, 0:8]\nsave %y[:, 8:16] <- %t[:, 8:16]";
    // Bytes 8 to 12 may be of any; those before are of the second, in every iteration.
    assert_eq!(reaching(body, "t"), [vec![2], vec![1, 2, 3]]);
}

#[test]
fn accumulation_reads_what_it_adds_to() {
    let body = |accumulate: &str| {
        format!(
            "
        %s = alloc sbuf<128x128xbf16> {{kind = input}}
        %m = alloc sbuf<128x512xbf16> {{kind = input}}
        %p = alloc psum<128x512xf32>
        loop %k = 0 to 4 step 1 {{
          matmult %p <- stationary %s, moving %m {accumulate}
        }}"
        )
    };
    assert!(undefined(&body("")).is_empty());
    assert!(undefined(&body("{accumulate = unless_first(%k)}")).is_empty());
    assert_eq!(undefined(&body("{accumulate}")), ["p 0:128 x 0:2048"]);
}

#[test]
fn predicated_writes_neither_kill_nor_leave_holes() {
    let body = "
        %x = alloc dram<128x64xf32> {kind = input}
        %q = alloc dram<128x64xu8> {kind = input}
        %m = alloc sbuf<128x64xu8>
        %a = alloc sbuf<128x64xf32>
        %b = alloc sbuf<128x64xf32>
        load %m <- %q
        load %a <- %x
        copy_predicated %a <- %m, 0.0
        tensor_copy %b <- %a";
    assert_eq!(reaching(body, "a"), [vec![1], vec![1, 2]]);
    assert!(undefined(&body.replace("load %a <- %x", "")).is_empty());
}

#[test]
fn blocks_define_on_every_path_or_not_at_all() {
    let body = "
        %x = alloc dram<1x1xi32> {kind = input}
        %a = alloc sbuf<32x64xf32>
        %b = alloc sbuf<32x64xf32>
        %r = register_load <- %x
        cond_br %r, ^l, ^r
      ^l:
        memset %a <- 1.0
        br ^done
      ^r:
        memset %a[0:32, 0:32] <- 2.0
        br ^done
      ^done:
        tensor_copy %b <- %a";
    assert_eq!(undefined(body), ["a 0:32 x 128:256"]);
    assert_eq!(reaching(body, "a"), [vec![2, 4]]);
}

#[test]
fn eight_banks_in_turn_depend_on_their_own_bank_only() {
    let mut body = String::from("%x = alloc dram<32x64xf32> {kind = input}\n");
    body += "%b = alloc sbuf<32x512xf32>\n%o = alloc sbuf<32x64xf32>\n";
    for step in 0..24 {
        let at = step % 8 * 64;
        body += &format!("load %b[0:32, {at}:{}] <- %x\n", at + 64);
        body += &format!("tensor_copy %o <- %b[0:32, {at}:{}]\n", at + 64);
    }
    let want: Vec<Vec<u32>> = (0..24).map(|step| vec![2 * step]).collect();
    assert_eq!(reaching(&body, "b"), want);
}

#[test]
fn outputs_must_be_written_in_full() {
    let body = "
        %x = alloc dram<128x64xf32> {kind = input}
        %y = alloc dram<128x64xf32> {kind = output}
        %t = alloc sbuf<128x64xf32>
        load %t <- %x
        save %y[0:64, 0:64] <- %t[0:64, 0:64]";
    let (ir, index) = index(body);
    let missing = index.unwritten_outputs();
    assert_eq!(missing.len(), 1);
    assert_eq!(name(&ir, missing[0].value), "y");
    let gap = Gap {
        partitions: (0, 1),
        bytes: (64 * 64 * 4, 128 * 64 * 4),
    };
    assert_eq!(missing[0].gaps, [gap]);
}

#[test]
fn intervals_reach_through_loops_that_carry_them() {
    let body = "
        %x = alloc dram<128x512xf32> {kind = input}
        %y = alloc dram<128x512xf32> {kind = output}
        %before = alloc sbuf<128x512xf32>
        %inside = alloc sbuf<128x512xf32>
        %carried = alloc sbuf<128x512xf32>
        memset %before <- 0.0
        memset %carried <- 0.0
        loop %i = 0 to 4 step 1 {
          load %inside <- %x
          tensor_tensor add %inside <- %inside, %before
          tensor_tensor add %carried <- %carried, %inside
          save %y <- %carried
        }
        memset %before <- 0.0";
    let (ir, index) = index(body);
    let live = Live::new(&index);
    let of = |wanted: &str| {
        let at = index
            .locations()
            .iter()
            .position(|location| name(&ir, location.value) == wanted);
        live.of(at.unwrap() as u32).unwrap()
    };
    let interval = |first, last| Interval { first, last };
    assert_eq!(of("inside"), interval(3, 5));
    assert_eq!(of("before"), interval(0, 7));
    assert_eq!(of("carried"), interval(1, 6));
    assert_eq!(of("x"), interval(0, 7));
    let peaks = live.peaks(&index);
    let sbuf = peaks.iter().find(|peak| peak.space == Space::Sbuf).unwrap();
    assert_eq!((sbuf.bytes, sbuf.at), (3 * 2048, 3));
}

#[test]
fn placed_locations_conflict_by_address_and_time() {
    let body = "
        %x = alloc dram<64x512xf32> {kind = input}
        %y = alloc dram<64x512xf32> {kind = output}
        %a = alloc sbuf<64x512xf32> at [0, 0x0]
        %b = alloc sbuf<64x512xf32> at [0, 0x400]
        %c = alloc sbuf<64x512xf32> at [64, 0x400]
        %d = alloc sbuf<64x512xf32> at [0, 0x0]
        load %a <- %x
        load %b <- %x
        tensor_copy %c <- %a
        save %y <- %b
        tensor_copy %d <- %c
        save %y <- %d";
    let (ir, func) = read(body);
    let index = FunctionIndex::build(&ir, func, Frames::Addresses);
    let overlaps = Live::new(&index).overlaps(&index, 10);
    let names: Vec<_> = overlaps
        .iter()
        .map(|o| (name(&ir, o.a), name(&ir, o.b)))
        .collect();
    assert_eq!(names, [("a", "b")]);
    // The read of `a` sees the load of `b` too.
    let touches = index.touches();
    let read = (0u32..)
        .zip(touches)
        .find(|(_, touch)| touch.order == 2 && touch.effect.is_read());
    let (found, _) = index.reaching(read.unwrap().0);
    let orders: Vec<u32> = found.iter().map(|&w| touches[w as usize].order).collect();
    assert_eq!(orders, [0, 1]);
}

#[test]
fn clobbers_between_a_copy_and_its_use() {
    let body = "
        %a = alloc sbuf<32x64xf32>
        %b = alloc sbuf<32x64xf32>
        %c = alloc sbuf<32x64xf32>
        memset %a <- 1.0
        tensor_copy %b <- %a[0:32, 0:64]
        memset %a[0:32, 32:64] <- 2.0
        tensor_copy %c[0:32, 0:32] <- %a[0:32, 0:32]
        tensor_copy %c <- %a";
    let (_, index) = index(body);
    let reads: Vec<u32> = (0u32..)
        .zip(index.touches())
        .filter(|(_, touch)| touch.effect.is_read())
        .map(|(at, _)| at)
        .collect();
    let [whole, left, last] = reads[..] else {
        panic!("{reads:?}");
    };
    assert!(!index.clobbered_between(whole, last, left));
    assert!(index.clobbered_between(whole, last, whole));
    assert!(!index.clobbered_between(left, last, whole));
    assert_eq!(index.uses(0), [whole, left, last]);
}

#[test]
fn kernels_read_nothing_undefined_and_write_all_outputs() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../test/kernels");
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ext| ext == "bir"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut ir = new_ir();
        let mut diags = Diagnostics::default();
        let options = ParseOptions::default();
        parse(&text, 0..text.len(), &mut ir, options, &mut diags);
        let funcs: Vec<Op> = ir
            .walk()
            .ops()
            .filter(|&op| OpCode::of(&ir, op) == Some(OpCode::Func))
            .collect();
        for func in funcs {
            let index = FunctionIndex::build(&ir, func, Frames::Locations);
            let reads: Vec<_> = index.undefined_reads();
            let names: Vec<&str> = reads.iter().map(|r| name(&ir, r.value)).collect();
            assert!(names.is_empty(), "{file:?}: {names:?}");
            let outputs = index.unwritten_outputs();
            let names: Vec<&str> = outputs.iter().map(|o| name(&ir, o.value)).collect();
            assert!(names.is_empty(), "{file:?}: {names:?}");
        }
    }
}

#[test]
fn deep_nests_and_long_chains() {
    let depth = 10_000;
    let mut body = String::from("%a = alloc sbuf<32x64xf32>\n");
    for at in 0..depth {
        body += &format!("loop %i{at} = 0 to 2 step 1 {{\nmemset %a <- 0.0\n");
    }
    body += "tensor_copy %a <- %a\n";
    body += &"}\n".repeat(depth);
    let (_, nest) = index(&body);
    assert!(nest.undefined_reads().is_empty());
    assert_eq!(nest.touches().len(), depth + 2);
    Live::new(&nest);
    let blocks = 100_000;
    let mut body = String::from("%a = alloc sbuf<32x64xf32>\n%b = alloc sbuf<32x64xf32>\n");
    body += "memset %a <- 0.0\n";
    for block in 0..blocks {
        body += &format!("br ^b{block}\n^b{block}:\ntensor_copy %b <- %a\n");
    }
    let (_, chain) = index(&body);
    assert!(chain.undefined_reads().is_empty());
    assert_eq!(chain.touches().len(), 2 * blocks + 1);
}
