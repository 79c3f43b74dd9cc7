//! `Memory`: the questions rewrites ask, against the index and against a memory made anew.

use crate::support::{Rng, function, fuzz, random_program, read};
use bir_dialect::analysis::deps::Memory;
use bir_dialect::analysis::index::{Frames, FunctionIndex};
use bir_dialect::bir::ops::OpCode;
use bir_dialect::ir::{Cursor, Ir, Op, Operand};

/// Instructions without regions, and all their operands.
fn instructions(ir: &Ir, func: Op) -> Vec<Op> {
    let skip = [Some(OpCode::Alloc), Some(OpCode::Func)];
    ir.walk_op(func)
        .filter(|&op| ir.regions(op).is_empty() && !skip.contains(&OpCode::of(ir, op)))
        .collect()
}

#[test]
fn clobbers_in_straight_code_are_those_of_the_index() {
    let mut rng = Rng(0x5eed_0007);
    let (mut yes, mut no) = (0, 0);
    for round in 0..fuzz(150) {
        let program = random_program(&mut rng, 30, false, false);
        let (ir, func) = read(&program.text);
        let memory = Memory::new(&ir, func);
        let index = FunctionIndex::build(&ir, func, Frames::Addresses);
        let touches = index.touches();
        let storage = |at: usize| index.locations()[touches[at].location as usize].storage;
        for _ in 0..60 {
            let of = rng.below(touches.len() as u64) as usize;
            let same: Vec<usize> = (0..touches.len())
                .filter(|&at| storage(at) == storage(of))
                .collect();
            let from = same[rng.below(same.len() as u64) as usize];
            let to = same[rng.below(same.len() as u64) as usize];
            if touches[from].order >= touches[to].order {
                continue;
            }
            // From behind the last touch of the one to the first of the other.
            let from = *same
                .iter()
                .rfind(|&&at| touches[at].order == touches[from].order)
                .unwrap();
            let to = *same
                .iter()
                .find(|&&at| touches[at].order == touches[to].order)
                .unwrap();
            let want = index.clobbered_between(from as u32, to as u32, of as u32);
            let (op, operand) = (touches[of].op, touches[of].operand);
            let got = memory.clobbered_between(&ir, touches[from].op, touches[to].op, op, operand);
            assert_eq!(got, want, "round {round}");
            *(if got { &mut yes } else { &mut no }) += 1;
        }
    }
    assert!(yes > 500 && no > 500, "{yes} {no}");
}

#[test]
fn what_is_kept_up_to_date_answers_like_what_is_made_anew() {
    let mut rng = Rng(0x5eed_0008);
    for round in 0..fuzz(100) {
        let program = random_program(&mut rng, 30, round % 2 == 0, false);
        let (mut ir, func) = read(&program.text);
        let mut memory = Memory::new(&ir, func);
        for _ in 0..12 {
            // Whoever defines a register is used.
            let mut all = instructions(&ir, func);
            all.retain(|&op| ir.result(op).is_none());
            if all.len() < 3 {
                break;
            }
            let pick = |rng: &mut Rng| all[rng.below(all.len() as u64) as usize];
            let (op, beside) = (pick(&mut rng), pick(&mut rng));
            memory.remove(&ir, op);
            match rng.below(4) {
                0 => assert!(ir.erase(op)),
                // Within its block, so that its loops stay around it.
                _ if op != beside && ir.block(op) == ir.block(beside) => {
                    ir.move_op(op, Cursor::Before(beside));
                    memory.insert(&ir, op);
                }
                _ => {
                    memory.insert(&ir, op);
                    memory.changed(&ir, op);
                }
            }
            let fresh = Memory::new(&ir, func);
            let all = instructions(&ir, func);
            for (at, &op) in all.iter().enumerate() {
                let operands: Vec<Operand> = ir.operand_ids(op).collect();
                for operand in operands {
                    assert_eq!(
                        memory.last_writer(&ir, op, operand),
                        fresh.last_writer(&ir, op, operand)
                    );
                    assert_eq!(
                        memory.readers_of(&ir, op, operand),
                        fresh.readers_of(&ir, op, operand)
                    );
                    let from = all[rng.below(at as u64 + 1) as usize];
                    let to = all[at + rng.below((all.len() - at) as u64) as usize];
                    assert_eq!(
                        memory.clobbered_between(&ir, from, to, op, operand),
                        fresh.clobbered_between(&ir, from, to, op, operand)
                    );
                    let value = ir.operand(operand).value;
                    assert_eq!(memory.sole_writer(value), fresh.sole_writer(value));
                    assert_eq!(memory.sole_reader(value), fresh.sole_reader(value));
                }
            }
        }
    }
}

#[test]
fn rewrites_learn_who_wrote_and_who_reads() {
    let body = "
        %x = alloc dram<4x64xf32> {kind = input}
        %s = alloc sbuf<4x64xf32>
        %c = alloc sbuf<4x64xf32>
        %d = alloc sbuf<4x64xf32>
        load %s <- %x
        tensor_copy %c <- %s
        memset %s[:, 0:1] <- 0.0
        tensor_copy %d[:, 0:32] <- %s[:, 0:32]
        tensor_copy %d[:, 32:64] <- %s[:, 32:64]
        load %s <- %x
        tensor_copy %d <- %s";
    let (ir, func) = function(body);
    let memory = Memory::new(&ir, func);
    let ops = instructions(&ir, func);
    let operand = |at: usize, nth: usize| ir.operand_ids(ops[at]).nth(nth).unwrap();
    let (readers, all) = memory.readers_of(&ir, ops[0], operand(0, 0));
    assert_eq!((readers, all), (vec![ops[1], ops[3], ops[4]], true));
    let (readers, all) = memory.readers_of(&ir, ops[2], operand(2, 0));
    assert_eq!((readers, all), (vec![ops[3]], true));
    let last = memory.last_writer(&ir, ops[4], operand(4, 1)).unwrap();
    assert_eq!((last.op, last.covers), (ops[0], true));
    let last = memory.last_writer(&ir, ops[3], operand(3, 1)).unwrap();
    assert_eq!((last.op, last.covers), (ops[2], false));
    // The copy's source is overwritten in part: only who reads that part minds.
    assert!(memory.clobbered_between(&ir, ops[1], ops[3], ops[3], operand(3, 1)));
    assert!(!memory.clobbered_between(&ir, ops[1], ops[4], ops[4], operand(4, 1)));
    let location = |name: &str| {
        let named = |op: &Op| {
            ir.result(*op)
                .and_then(|v| ir.value_name(v))
                .map(|n| ir.ctx.text(n))
                == Some(name)
        };
        ir.walk_op(func)
            .find(named)
            .and_then(|op| ir.result(op))
            .unwrap()
    };
    assert_eq!(memory.sole_writer(location("c")), Some(ops[1]));
    assert_eq!(memory.sole_writer(location("s")), None);
    assert_eq!(memory.sole_reader(location("c")), None);
}

/// The operands of an instruction.
fn operands(ir: &Ir, op: Op) -> Vec<Operand> {
    ir.operand_ids(op).collect()
}

#[test]
fn order_is_that_of_the_text_also_of_what_came_later() {
    let body = "
        %s = alloc sbuf<4x64xf32>
        memset %s <- 0.0
        loop %i = 0 to 2 {
          memset %s <- 1.0
        }
        memset %s <- 2.0";
    let (mut ir, func) = function(body);
    let mut memory = Memory::new(&ir, func);
    let ops = instructions(&ir, func);
    for (at, &a) in ops.iter().enumerate() {
        for (other, &b) in ops.iter().enumerate() {
            assert_eq!(memory.comes_before(a, b), at < other, "{at} {other}");
        }
    }
    // The last goes first, and is told of.
    memory.remove(&ir, ops[2]);
    ir.move_op(ops[2], Cursor::Before(ops[0]));
    memory.insert(&ir, ops[2]);
    assert!(memory.comes_before(ops[2], ops[0]));
    assert!(memory.comes_before(ops[2], ops[1]));
    assert!(!memory.comes_before(ops[1], ops[2]));
}

#[test]
fn an_instruction_may_write_what_it_and_others_read() {
    let body = "
        %s = alloc sbuf<4x64xf32>
        %t = alloc sbuf<4x64xf32>
        %m = alloc sbuf<4x64xu8>
        tensor_copy %s[:, 0:32] <- %s[:, 32:64]
        tensor_copy %s <- %s
        tensor_copy %t[:, 0:8] <- %s[:, 28:36]
        copy_predicated %s[:, 32:64] <- %m[:, 0:32], %t[:, 0:32]";
    let (ir, func) = function(body);
    let memory = Memory::new(&ir, func);
    let ops = instructions(&ir, func);
    let read = |at: usize, nth: usize| (ops[at], operands(&ir, ops[at])[nth]);
    let writes = |by: usize, of: (Op, Operand)| memory.writes(ops[by], of.0, of.1);
    // Its own source, where it is another part and where it is the same.
    assert!(!writes(0, read(0, 1)));
    assert!(writes(1, read(1, 1)));
    // Of what another reads: a part, all, nothing, and what may be under a mask.
    assert!(writes(0, read(2, 1)));
    assert!(writes(1, read(2, 1)));
    assert!(!writes(2, read(1, 1)));
    assert!(writes(3, read(2, 1)));
    assert!(!writes(3, read(3, 2)));
}

#[test]
fn reads_and_writes_in_between_touch() {
    let body = "
        %x = alloc dram<4x64xf32> {kind = input}
        %s = alloc sbuf<4x64xf32>
        %t = alloc sbuf<4x64xf32>
        load %s[:, 0:32] <- %x[:, 0:32]
        tensor_copy %t[:, 0:32] <- %s[:, 0:32]
        memset %s[:, 32:64] <- 0.0
        memset %s[:, 0:32] <- 0.0
        tensor_copy %t[:, 32:64] <- %s[:, 32:64]";
    let (ir, func) = function(body);
    let memory = Memory::new(&ir, func);
    let ops = instructions(&ir, func);
    let first = operands(&ir, ops[0])[0];
    let between = |from: usize, to: usize, except: &[Op]| {
        memory.touched_between(&ir, ops[from], ops[to], (ops[0], first), except)
    };
    // A read touches, a write beside it does not, the ends do not count.
    assert!(between(0, 2, &[]));
    assert!(!between(0, 1, &[]));
    assert!(!between(1, 3, &[]));
    assert!(between(1, 4, &[]));
    assert!(!between(0, 2, &[ops[1]]));
    assert!(between(0, 4, &[ops[1]]));
    assert!(!between(0, 4, &[ops[1], ops[3]]));
}
