//! Random programs with their dependences by the definition: every byte knows who wrote it last
//! and who read it since.

#![allow(unreachable_pub, dead_code)] // each test uses what it needs

use std::collections::BTreeSet;

use bir_dialect::analysis::deps::Graph;
use bir_dialect::bir::ops::OpCode;
use bir_dialect::bir::program::DepKind;
use bir_dialect::bir::verify::Level;
use bir_dialect::ir::{Ir, Op};

/// A small deterministic generator.
pub struct Rng(pub u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 33) % n
    }

    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u64) as usize]
    }
}

pub fn fuzz(times: u64) -> u64 {
    let scale = std::env::var("BIR_FUZZ").ok().and_then(|s| s.parse().ok());
    times * scale.unwrap_or(1)
}

pub fn read(text: &str) -> (Ir, Op) {
    let ir = bir_dialect::read(text, Level::Off).unwrap();
    let func = ir
        .walk()
        .ops()
        .find(|&op| OpCode::of(&ir, op) == Some(OpCode::Func));
    (ir, func.unwrap())
}

/// A function around a body.
pub fn function(body: &str) -> (Ir, Op) {
    read(&format!(
        "bir.module @m {{\nbir.func @f {{\n{body}\n}}\n}}\n"
    ))
}

/// Edges as `(kind, from, to)` over the instructions, loops not counted.
pub type Edges = BTreeSet<(DepKind, u32, u32)>;

/// The edges of a graph, expanded; loops are not counted as instructions.
pub fn expanded(ir: &Ir, graph: &Graph) -> Edges {
    let mut number = Vec::new();
    let mut next = 0;
    for &op in graph.ops() {
        number.push(next);
        next += u32::from(ir.regions(op).is_empty());
    }
    let mut all = Edges::new();
    for (at, &to) in (0u32..).zip(&number) {
        for edge in graph.edges(at) {
            for from in graph.expand(edge.source()) {
                all.insert((edge.kind(), number[from as usize], to));
            }
        }
    }
    all
}

const PARTITIONS: i64 = 8;
const BYTES: i64 = 64;

/// A location: what stands behind `alloc`, and where its first byte is in the map of all bytes.
struct Place {
    text: &'static str,
    base: i64,
    /// Bytes from one partition to the next in the map.
    row: i64,
}

const PLACES: &[Place] = &[
    Place {
        text: "sbuf<8x16xf32>",
        base: 0,
        row: 64,
    },
    Place {
        text: "sbuf<8x16xf32>",
        base: 512,
        row: 64,
    },
    Place {
        text: "sbuf<8x16xf32> {must_alias = @l1}",
        base: 512,
        row: 64,
    },
    // Three that overlap by their placement.
    Place {
        text: "sbuf<8x16xf32> at [0, 0x0]",
        base: 1024,
        row: 256,
    },
    Place {
        text: "sbuf<8x16xf32> at [0, 0x20]",
        base: 1024 + 32,
        row: 256,
    },
    Place {
        text: "sbuf<8x16xf32> at [4, 0x30]",
        base: 1024 + 4 * 256 + 48,
        row: 256,
    },
];
/// Behind the bytes, one place per register.
const MAP: usize = 1024 + 16 * 256 + REGISTERS;
const REGISTERS: usize = 3;

/// An access: the location, or a register behind the last of them, and the bytes at index values.
#[derive(Clone)]
struct Access {
    place: usize,
    text: String,
    window: (i64, i64),
    size: i64,
    offset: i64,
    pairs: Vec<(i64, i64)>,
    /// Per loop around: partitions and elements per step of the index.
    moves: Vec<(i64, i64)>,
}

impl Access {
    fn register(number: usize) -> Access {
        Access {
            place: PLACES.len() + number,
            text: format!("%r{number}"),
            window: (0, 0),
            size: 0,
            offset: 0,
            pairs: vec![],
            moves: vec![],
        }
    }

    fn bytes(&self, indices: &[i64]) -> Vec<usize> {
        let Some(place) = PLACES.get(self.place) else {
            return vec![MAP - REGISTERS + self.place - PLACES.len()];
        };
        let (mut first, mut offset) = (self.window.0, self.offset);
        for (by, index) in self.moves.iter().zip(indices) {
            first += by.0 * index;
            offset += by.1 * index;
        }
        let mut offsets = vec![offset];
        for &(step, count) in &self.pairs {
            let all = offsets
                .iter()
                .flat_map(|&at| (0..count).map(move |i| at + step * i));
            offsets = all.collect();
        }
        let mut found = Vec::new();
        for partition in first..first + self.window.1 {
            for offset in &offsets {
                for byte in 0..self.size {
                    let at = offset * self.size + byte;
                    assert!((0..PARTITIONS).contains(&partition) && (0..BYTES).contains(&at));
                    found.push((place.base + partition * place.row + at) as usize);
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}

struct Instruction {
    reads: Vec<Access>,
    writes: Vec<Access>,
    /// Whether the writes are certain.
    must: bool,
}

enum Item {
    Instruction(Instruction),
    Loop(i64, Vec<Item>),
    /// A loop that may make no trip.
    Maybe(Vec<Item>),
    /// One of two.
    Either(Vec<Item>, Vec<Item>),
    /// A branch: touches nothing.
    Branch,
}

pub struct Program {
    pub text: String,
    items: Vec<Item>,
    pub instructions: u32,
}

/// Room the indices of loops leave: partitions and elements of four bytes.
fn random_access(rng: &mut Rng, loops: &[i64], alike: Option<(i64, i64)>) -> Access {
    let place = rng.below(PLACES.len() as u64) as usize;
    let (dtype, size) = rng.of(&[("f32", 4), ("bf16", 2), ("u8", 1), ("f32", 4)]);
    let mut moves = Vec::new();
    let (mut spare_p, mut spare_e) = (0, 0);
    for trips in loops {
        let by = match alike {
            Some((p, bytes)) => (p, bytes / size),
            None => match rng.below(5) {
                0 => (1, 0),
                1 | 2 => (0, rng.of(&[1, 2]) * 4 / size),
                _ => (0, 0),
            },
        };
        spare_p += by.0 * (trips - 1);
        spare_e += by.1 * (trips - 1);
        moves.push(by);
    }
    let (partitions, units) = (PARTITIONS - spare_p, BYTES / size - spare_e);
    let (mut window, mut pairs) = ((0, partitions), Vec::new());
    if rng.below(3) > 0 {
        let start = rng.below(partitions as u64) as i64;
        window = (start, 1 + rng.below((partitions - start) as u64) as i64);
    }
    let mut offset = 0;
    match rng.below(5) {
        0 => pairs.push((1, units)),
        1 => {
            offset = rng.below(units as u64) as i64;
            pairs.push((1, 1 + rng.below((units - offset) as u64) as i64));
        }
        2 => {
            let step = 1i64 << rng.below(3);
            offset = rng.below(step.min(units) as u64) as i64;
            pairs.push((step, (units - offset - 1) / step + 1));
        }
        3 => {
            offset = units - 1;
            pairs.push((-2, 1 + rng.below((units as u64).div_ceil(2)) as i64));
        }
        _ => {
            let mut left = units - 1;
            for _ in 0..1 + rng.below(3) {
                let step = rng.of(&[1, 2, 3, 4, 8]);
                let count = 1 + rng.below((left / step).min(6) as u64 + 1) as i64;
                left -= step * (count - 1);
                pairs.push((step, count));
            }
            offset = rng.below(left as u64 + 1) as i64;
        }
    }
    let affine = |constant: i64, of: &dyn Fn(&(i64, i64)) -> i64| {
        let mut text = constant.to_string();
        for (depth, by) in moves.iter().enumerate() {
            if of(by) != 0 {
                text += &format!(" + {}*%i{depth}", of(by));
            }
        }
        text
    };
    let mut text = format!("%l{place}");
    if dtype != "f32" {
        text += &format!(" as {dtype}");
    }
    text += &format!(
        "[p {} +: {}, off {}",
        affine(window.0, &|by| by.0),
        window.1,
        affine(offset, &|by| by.1)
    );
    for (step, count) in &pairs {
        text += &format!(", {step} x {count}");
    }
    text += "]";
    Access {
        place,
        text,
        window,
        size,
        offset,
        pairs,
        moves,
    }
}

/// An instruction that writes a register that is there.
fn random_register(rng: &mut Rng) -> (Instruction, String) {
    let mut register = || Access::register(rng.below(REGISTERS as u64) as usize);
    let (a, b, c) = (register(), register(), register());
    let (reads, text) = match rng.below(3) {
        0 => (vec![], format!("register_move {} <- 1", a.text)),
        1 => {
            let text = format!("register_move {} <- {}", a.text, b.text);
            (vec![b], text)
        }
        _ => {
            let text = format!("register_alu add {} <- {}, {}", a.text, b.text, c.text);
            (vec![b, c], text)
        }
    };
    let instruction = Instruction {
        reads,
        writes: vec![a],
        must: true,
    };
    (instruction, text)
}

fn random_instruction(
    rng: &mut Rng,
    loops: &[i64],
    alike: Option<(i64, i64)>,
) -> (Instruction, String) {
    let mut access = || random_access(rng, loops, alike);
    let (a, b, c) = (access(), access(), access());
    let kind = rng.below(8);
    let texts = (a.text.clone(), b.text.clone(), c.text.clone());
    // A literal is a number of the dtype written.
    let one = if a.size == 1 { "1" } else { "1.0" };
    let (reads, writes, must, text) = match kind {
        0 | 1 => (
            vec![],
            vec![a],
            true,
            format!("memset {} <- {one}", texts.0),
        ),
        2 | 3 => (
            vec![b],
            vec![a],
            true,
            format!("tensor_copy {} <- {}", texts.0, texts.1),
        ),
        4 => (
            vec![b, c],
            vec![a],
            true,
            format!("tensor_tensor add {} <- {}, {}", texts.0, texts.1, texts.2),
        ),
        // Under a mask: keeps what it does not write.
        5 => {
            let kept = a.clone();
            (
                vec![b, c, kept],
                vec![a],
                false,
                format!("copy_predicated {} <- {}, {}", texts.0, texts.1, texts.2),
            )
        }
        // In place.
        6 => {
            let own = a.clone();
            (
                vec![own],
                vec![a],
                true,
                format!("tensor_copy {} <- {}", texts.0, texts.0),
            )
        }
        _ => {
            let text = format!("tensor_scalar add {} <- {}, 1.0", texts.0, texts.1);
            (vec![b], vec![a], true, text)
        }
    };
    (
        Instruction {
            reads,
            writes,
            must,
        },
        text,
    )
}

/// A program of at most `most` instructions; with loops or without. Loops whose accesses all move
/// alike are compared exactly.
pub fn random_program(rng: &mut Rng, most: u64, loops: bool, alike: bool) -> Program {
    let mut text = String::from("bir.module @m {\nbir.func @f {\n");
    for (at, place) in PLACES.iter().enumerate() {
        text += &format!("%l{at} = alloc {}\n", place.text);
    }
    let mut open: Vec<(i64, Vec<Item>)> = Vec::new();
    let mut items: Vec<Item> = Vec::new();
    let mut count = 1 + rng.below(most) as u32;
    let registers = rng.below(3) == 0;
    if registers {
        for number in 0..REGISTERS {
            text += &format!("%r{number} = register_move <- 0\n");
            items.push(Item::Instruction(Instruction {
                reads: vec![],
                writes: vec![Access::register(number)],
                must: true,
            }));
        }
    }
    let by = alike.then(|| rng.of(&[(0, 0), (1, 0), (0, 8), (0, 4)]));
    for _ in 0..count {
        while loops && rng.below(6) == 0 {
            if open.len() < 2 && rng.below(2) == 0 {
                let trips = 1 + rng.below(3) as i64;
                text += &format!("loop %i{} = 0 to {trips} {{\n", open.len());
                open.push((trips, std::mem::take(&mut items)));
            } else if let Some((trips, outer)) = open.pop() {
                text += "}\n";
                let body = std::mem::replace(&mut items, outer);
                items.push(Item::Loop(trips, body));
            }
        }
        let trips: Vec<i64> = open.iter().map(|(trips, _)| *trips).collect();
        let (instruction, line) = match registers && rng.below(3) == 0 {
            true => random_register(rng),
            false => random_instruction(rng, &trips, by),
        };
        items.push(Item::Instruction(instruction));
        text += &line;
        text.push('\n');
    }
    while let Some((trips, outer)) = open.pop() {
        text += "}\n";
        let body = std::mem::replace(&mut items, outer);
        items.push(Item::Loop(trips, body));
    }
    text += "}\n}\n";
    count += if registers { REGISTERS as u32 } else { 0 };
    Program {
        text,
        items,
        instructions: count,
    }
}

/// A program of at most about so many instructions whose accesses stand still: loops in loops with
/// bodies of several blocks, some of which may not run.
pub fn still_program(rng: &mut Rng, most: u64) -> Program {
    let mut still = Still {
        text: String::from(
            "bir.module @m {\nbir.func @f {\n%n = alloc dram<1x1xi32> {kind = input}\n",
        ),
        left: 1 + rng.below(most) as u32,
        count: 1,
        regions: 0,
    };
    for (at, place) in PLACES.iter().enumerate() {
        still.text += &format!("%l{at} = alloc {}\n", place.text);
    }
    still.text += "%c = register_load <- %n\n";
    let mut items = vec![Item::Branch];
    items.extend(still.block(rng, 0));
    still.text += "}\n}\n";
    Program {
        text: still.text,
        items,
        instructions: still.count,
    }
}

struct Still {
    text: String,
    left: u32,
    count: u32,
    regions: u32,
}

impl Still {
    fn block(&mut self, rng: &mut Rng, depth: u32) -> Vec<Item> {
        let mut items = Vec::new();
        // Often few, so that a location is accessed on some of the ways only.
        for _ in 0..rng.below(if depth == 0 { 12 } else { 4 }) {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            if depth < 3 && rng.below(3) == 0 {
                let head = match rng.below(6) {
                    0 => "while %c".to_owned(),
                    1 => format!("loop %i{depth} = 0 to %c"),
                    _ => format!("loop %i{depth} = 0 to 2"),
                };
                self.text += &format!("{head} {{\n");
                let body = self.body(rng, depth + 1);
                self.text += "}\n";
                items.push(match head.ends_with('2') {
                    true => Item::Loop(2, body),
                    false => Item::Maybe(body),
                });
            } else {
                let (instruction, line) = random_instruction(rng, &[], None);
                self.text += &format!("{line}\n");
                self.count += 1;
                items.push(Item::Instruction(instruction));
            }
        }
        items
    }

    fn body(&mut self, rng: &mut Rng, depth: u32) -> Vec<Item> {
        let mut items = self.block(rng, depth);
        self.regions += 1;
        let id = self.regions;
        let branch = |still: &mut Still, text: &str| {
            still.text += text;
            still.count += 1;
            Item::Branch
        };
        match rng.below(3) {
            0 => {
                items.push(branch(self, &format!("br ^c{id}\n^c{id}:\n")));
                items.extend(self.block(rng, depth));
            }
            1 => {
                items.push(branch(
                    self,
                    &format!("cond_br %c, ^a{id}, ^b{id}\n^a{id}:\n"),
                ));
                let mut one = self.block(rng, depth);
                one.push(branch(self, &format!("br ^c{id}\n^b{id}:\n")));
                let mut other = self.block(rng, depth);
                other.push(branch(self, &format!("br ^c{id}\n^c{id}:\n")));
                items.push(Item::Either(one, other));
                items.extend(self.block(rng, depth));
            }
            _ => {}
        }
        items
    }
}

/// One execution: the instruction, and the loops it was in with their trips.
#[derive(Clone, PartialEq)]
struct Execution {
    instruction: u32,
    trips: Vec<(u32, i64)>,
}

impl Execution {
    /// Whether both are in one iteration of the loops that hold both.
    fn same_iteration(&self, other: &Execution) -> bool {
        let pairs = self.trips.iter().zip(&other.trips);
        pairs
            .take_while(|(a, b)| a.0 == b.0)
            .all(|(a, b)| a.1 == b.1)
    }
}

#[derive(Default, Clone)]
struct Byte {
    writers: Vec<Execution>,
    readers: Vec<Execution>,
}

struct Run {
    map: Vec<Byte>,
    edges: Edges,
}

/// The edges by the definition: the program is executed byte by byte.
pub fn by_definition(program: &Program) -> Edges {
    let mut run = Run {
        map: vec![Byte::default(); MAP],
        edges: Edges::new(),
    };
    let mut next = (0, 0);
    run.items(&program.items, &mut Vec::new(), &mut next);
    run.edges
}

impl Run {
    fn items(&mut self, items: &[Item], around: &mut Vec<(u32, i64)>, next: &mut (u32, u32)) {
        for item in items {
            match item {
                Item::Instruction(instruction) => {
                    let now = Execution {
                        instruction: next.0,
                        trips: around.clone(),
                    };
                    next.0 += 1;
                    self.execute(instruction, now);
                }
                Item::Branch => next.0 += 1,
                Item::Loop(trips, body) => self.iterations(*trips, body, around, next),
                Item::Maybe(body) => {
                    let before = self.map.clone();
                    self.iterations(2, body, around, next);
                    self.join(before);
                }
                Item::Either(one, other) => {
                    let before = self.map.clone();
                    self.items(one, around, next);
                    let behind = std::mem::replace(&mut self.map, before);
                    self.items(other, around, next);
                    self.join(behind);
                }
            }
        }
    }

    fn iterations(
        &mut self,
        trips: i64,
        body: &[Item],
        around: &mut Vec<(u32, i64)>,
        next: &mut (u32, u32),
    ) {
        let id = next.1;
        next.1 += 1;
        let start = *next;
        for trip in 0..trips {
            *next = start;
            around.push((id, trip));
            self.items(body, around, next);
            around.pop();
        }
    }

    /// What either of two ways leaves.
    fn join(&mut self, other: Vec<Byte>) {
        for (byte, other) in self.map.iter_mut().zip(other) {
            for (list, more) in [
                (&mut byte.writers, other.writers),
                (&mut byte.readers, other.readers),
            ] {
                for one in more {
                    if !list.contains(&one) {
                        list.push(one);
                    }
                }
            }
        }
    }

    fn edge(edges: &mut Edges, kind: DepKind, from: &[Execution], to: &Execution) {
        for one in from {
            if one.instruction != to.instruction && one.same_iteration(to) {
                edges.insert((kind, one.instruction, to.instruction));
            }
        }
    }

    fn execute(&mut self, what: &Instruction, now: Execution) {
        let indices: Vec<i64> = now.trips.iter().map(|trip| trip.1).collect();
        for access in &what.reads {
            for byte in access.bytes(&indices) {
                Run::edge(
                    &mut self.edges,
                    DepKind::Flow,
                    &self.map[byte].writers,
                    &now,
                );
            }
        }
        for access in &what.writes {
            for byte in access.bytes(&indices) {
                Run::edge(
                    &mut self.edges,
                    DepKind::Output,
                    &self.map[byte].writers,
                    &now,
                );
                Run::edge(
                    &mut self.edges,
                    DepKind::Anti,
                    &self.map[byte].readers,
                    &now,
                );
            }
        }
        for access in &what.reads {
            for byte in access.bytes(&indices) {
                let readers = &mut self.map[byte].readers;
                if !readers.contains(&now) {
                    readers.push(now.clone());
                }
            }
        }
        for access in &what.writes {
            for byte in access.bytes(&indices) {
                let byte = &mut self.map[byte];
                if what.must {
                    *byte = Byte::default();
                }
                if !byte.writers.contains(&now) {
                    byte.writers.push(now.clone());
                }
            }
        }
    }
}

/// Who depends on whom, whatever for.
pub fn pairs_of(edges: &Edges) -> Vec<(u32, u32)> {
    let mut pairs: Vec<(u32, u32)> = edges.iter().map(|&(_, from, to)| (from, to)).collect();
    pairs.sort_unstable();
    pairs.dedup();
    pairs
}
