//! Random statements over the whole op table, right and wrong ones, and random changes of texts.
//!
//! Not generated: block labels and branches outside foreign operations, `while`, functions with parameters, several modules, aliases, `loc` aliases.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test may fail so

use std::collections::HashMap;

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::{
    AttrDef, AttrType, COMMON_ATTRS, ImmType, Kind, OPS, OpDef, OperandDef, Syntax,
};

/// SplitMix64: the same numbers in every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    /// True `percent` times of a hundred.
    pub fn percent(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }
}

/// What statements may name.
pub const PRELUDE: &str = "\
    %x = alloc dram<128x512xf32> {kind = input}
    %y = alloc dram<128x512xf32> {kind = output}
    %idx = alloc sbuf<128x1xu32>
    %t = alloc sbuf<128x512xf32>
    %t2 = alloc sbuf<128x512xf32>
    %b = alloc sbuf<128x512xbf16>
    %b.c-d = alloc sbuf<128x512xbf16>
    %e4 = alloc sbuf<128x512xf8e4m3>
    %i = alloc sbuf<128x512xi32>
    %u8 = alloc sbuf<128x512xu8>
    %s = alloc sbuf<128x1xf32>
    %s2 = alloc sbuf<128x1xf32>
    %deep = alloc sbuf<128x2x3x4x5xf32>
    %p = alloc psum<128x512xf32>
    %r = register_move <- 5
    %n = register_move <- 7
";
const TILES: &[&str] = &[
    "t", "t2", "t", "t2", "b", "b.c-d", "e4", "i", "u8", "s", "s2", "deep", "p", "x", "y", "idx",
];
const REGISTERS: &[&str] = &["r", "n"];
const INDICES: &[&str] = &["k", "l"];
const TYPES: &[&str] = &[
    "i32",
    "f32",
    "index",
    "!other.type<a -> b>",
    "tensor<2x3xui16>",
];
const INTS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "16",
    "32",
    "64",
    "127",
    "128",
    "255",
    "256",
    "511",
    "512",
    "513",
    "2048",
    "65536",
    "-1",
    "-128",
    "007",
    "-0",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999",
    "0x1F",
    "0xffffffff",
    "-0x10",
    "0x",
    "1x",
    "1_000",
    "2f",
    "+1",
];
const FLOATS: &[&str] = &[
    "1.0",
    "0.0",
    "-0.0",
    "0.5",
    "1.",
    ".5",
    "1e-5",
    "1.0e-5",
    "1E5",
    "1e16",
    "1e",
    "1e+3",
    "1e-45",
    "3.4028235e38",
    "3.4028236e38",
    "1e400",
    "1e-400",
    "inf",
    "-inf",
    "nan",
    "-nan",
    "infinity",
    "0x7F812345",
    "0x7f800000",
    "0xFFC00000",
    "0x3f80",
    "0x1FFFFFFFF",
    "0.1",
    "65504.0",
    "65520.0",
    "240.0",
    "1.003906250000909494701773",
    "1.0f",
    "1.0.0",
    "true",
    "false",
    "1",
    "-1",
    "255",
    "256",
];
const STRINGS: &[&str] = &[
    r#""""#,
    r#""exp""#,
    r#""trn2""#,
    r#""a b""#,
    r#""a\"b\\c""#,
    r#""\09\0A""#,
    r#""\n\t""#,
    r#""caf\C3\A9""#,
    r#""café""#,
    r#""\FF\00""#,
    r#""%t // no comment""#,
    r#""{[(<""#,
    r#""k.py:12:3""#,
    r#""\q""#,
    r#""0x803F""#,
    r#""swdge""#,
    r#""add""#,
];
const ATTRS: &[&str] = &[
    "true",
    "false",
    "unit",
    "@sym",
    "@\"quoted sym\"",
    "word",
    "f32",
    "i32",
    "bf16",
    "f8e4m3",
    "!bir.mem<sbuf, 128x4xf32>",
    "!bir.reg<i32>",
    "tensor<2x3xui16>",
    "!other.type<a<b>>",
    "(i32, f32) -> i32",
    "5 : i8",
    "200 : i8",
    "-1 : ui8",
    "1.5 : f32",
    "1.0 : bf16",
    "0x7F80 : f32",
    "1 : i1",
    "1 : f32",
    "#other.attr<x -> y>",
    "#bir.sem<4 ge 36>",
    "#bir.at<64, 0x1200>",
    "#bir.at<0, bank 3>",
    "#bir.at<0x4000>",
    "#bir.ap<p 0:128, off 511, [-1 x 512]>",
    "#bir.ap<as i32, off 0, []>",
    "#bir.bits<0x7F812345>",
    "#bir.bits<bf16 0x7F81>",
    "#bir.unless_first<d0>",
    "#bir.deps<flow 1, anti #2>",
    "#bir.order<[d0, 2*d1 + 1]>",
    "[]",
    "[1, 2, 3]",
    "[[0, 1], [2, 3]]",
    "[[1, 512]]",
    "[[0x10, -2]]",
    "[4 >= 36]",
    "[6 += 1 @complete]",
    "[4 := 0, 3 -= 2 @read]",
    "[4 == 3]",
    "[flow 1, anti #2]",
    "[ordered 3, output 4]",
    "[%k, 0]",
    "[2*%k + 1]",
    "unless_first(%k)",
    "unless_first(%t)",
    "{a = 1, b = {c}}",
    "{}",
    "dense<\"0x00FF\"> : tensor<2xui8>",
    "dense<[1, 2]> : tensor<2xui16>",
    "dense<1> : tensor<4xui8>",
    "dense<[1, 2, 3]> : tensor<2xui8>",
    "dense<>",
    "dense<[[1.0, nan], [-inf, 2]]>",
    "file(\"w.npy\")",
    "array<i32: 1, 2>",
    "array<i64>",
    "array<f32: 1.0, -2.5e+3>",
    "array<i1: true, false>",
    "bank 3",
    "[0, bank 3]",
    "[64, 0x1200]",
    "0x4000",
    "loc(\"a\":1:2)",
    "%t",
    "^bb1",
    "inf",
    "nan",
    "0x1F : i64",
    "affine_map<(d0) -> (d0)>",
    "1 : index",
    "\"s\"",
];

/// One generator of statements.
pub struct Generator {
    pub random: Random,
    fresh: usize,
}

impl Generator {
    pub fn new(seed: u64) -> Generator {
        Generator {
            random: Random::new(seed),
            fresh: 0,
        }
    }

    /// A program of `statements`, some inside two loops, with their comments and blank lines.
    pub fn program(&mut self, statements: &[String]) -> String {
        let mut out = format!(
            "// head\nbir.module @m {{target = \"trn2\"}} {{\n  bir.func @main {{\n{PRELUDE}"
        );
        out.push_str("    loop %k = 0 to 4 {\n      loop %l = 2 to 8 step 2 {\n");
        for statement in statements {
            out.push_str("        ");
            out.push_str(statement);
            out.push('\n');
        }
        out.push_str("      }\n    }\n  }\n}\n");
        out
    }

    /// A statement of each op in turn.
    pub fn statement(&mut self, number: usize) -> String {
        let ops: Vec<&OpDef> = OPS
            .iter()
            .filter(|op| op.syntax == Syntax::Instruction)
            .collect();
        let op = ops[number % ops.len()];
        let mut text = match number % 9 {
            4 => self.foreign(2),
            _ => self.instruction(op),
        };
        if self.random.percent(4) {
            text = self.damaged(&text);
        }
        match self.random.below(12) {
            0 => text.push_str(" // beside"),
            1 => text = format!("// before\n        {text}"),
            2 => text = format!("\n        // above\n\n        {text}"),
            _ => {}
        }
        text
    }

    fn instruction(&mut self, op: &OpDef) -> String {
        let mut out = String::new();
        let mut left = Vec::new();
        let mut right = Vec::new();
        let mut defines = op.result && self.random.percent(50);
        for operand in op.operands {
            let is_register_out = operand.kind == Kind::RegOut;
            if is_register_out && defines {
                continue;
            }
            if operand.optional && self.random.percent(60) {
                continue;
            }
            let count = if operand.variadic {
                self.random.below(3) + 1
            } else {
                1
            };
            for _ in 0..count {
                let text = self.operand(op, operand);
                if operand.is_left() {
                    left.push(text)
                } else {
                    right.push(text)
                }
            }
        }
        if self.random.percent(2) {
            defines = !defines;
        }
        if defines {
            self.fresh += 1;
            out.push_str(&format!("%new{} = ", self.fresh));
        }
        out.push_str(op.name);
        for word in op.words {
            if let Some(word) = self.word(op, word) {
                out.push(' ');
                out.push_str(&word);
            }
        }
        if !left.is_empty() {
            out.push(' ');
            out.push_str(&left.join(", "));
        }
        if !right.is_empty() || self.random.percent(1) {
            out.push_str(
                self.random
                    .pick(&[" <- ", " <- ", " <- ", "<-", " <-\n          "]),
            );
            out.push_str(&right.join(", "));
        }
        let entries = self.entries(op);
        if !entries.is_empty() || self.random.percent(3) {
            out.push_str(&format!(" {{{}}}", entries.join(", ")));
        }
        if self.random.percent(6) {
            out.push_str(self.random.pick(&[
                " loc(\"k.py\":12:3)",
                " loc(\"k.py\":0:99999999999)",
                " loc(unknown)",
                " loc(#loc1)",
                " loc(\"name\"(\"f\":1:2))",
            ]));
        }
        out
    }

    /// An operation of no known dialect, with results, regions and a use of what it defines.
    fn foreign(&mut self, depth: usize) -> String {
        let mut types = Vec::new();
        let mut names = Vec::new();
        let mut uses = Vec::new();
        for _ in 0..self.random.below(3) {
            self.fresh += 1;
            let name = format!("%new{}", self.fresh);
            let count = self.random.below(3) + 1;
            if count == 1 {
                uses.push(name.clone());
                names.push(name);
            } else {
                uses.extend((0..count).map(|part| format!("{name}#{part}")));
                names.push(format!("{name}:{count}"));
            }
            types.extend((0..count).map(|_| self.random.pick(TYPES)));
        }
        let mut use_types = types.clone();
        if self.random.percent(4) {
            types.push("i32");
        }
        let equals = if names.is_empty() { "" } else { " = " };
        let mut out = format!("{}{equals}\"other.op\"(", names.join(", "));
        let mut operands = Vec::new();
        let mut operand_types = Vec::new();
        for _ in 0..self.random.below(3) {
            let (name, ty) = self.typed_name();
            operands.push(name);
            operand_types.push(ty);
        }
        out.push_str(&operands.join(", "));
        out.push(')');
        let mut dict = || {
            let value = self.any_attr();
            format!("{{a = {value}, unit}}")
        };
        let (props, attrs) = (format!(" <{}>", dict()), format!(" {}", dict()));
        if self.random.percent(20) {
            out.push_str(&props);
        }
        let regions: Vec<String> = (0..self.random.below(3))
            .map(|_| self.region(depth))
            .collect();
        if !regions.is_empty() {
            out.push_str(&format!(" ({{\n{}}})", regions.join("}, {\n")));
        }
        if self.random.percent(30) {
            out.push_str(&attrs);
        }
        let types = match types[..] {
            [ty] => ty.to_owned(),
            _ => format!("({})", types.join(", ")),
        };
        out.push_str(&format!(" : ({}) -> {types}", operand_types.join(", ")));
        if !uses.is_empty() && self.random.percent(60) {
            use_types.truncate(uses.len());
            out.push_str(&format!(
                "\n\"other.use\"({}) : ({}) -> ()",
                uses.join(", "),
                use_types.join(", ")
            ));
        }
        out
    }

    /// What stands in a region of a foreign operation.
    fn region(&mut self, depth: usize) -> String {
        let mut out = String::new();
        let mut argument = None;
        if self.random.percent(30) {
            self.fresh += 1;
            let ty = self.random.pick(TYPES);
            out.push_str(&format!("^bb0(%new{}: {ty}):\n", self.fresh));
            argument = Some(format!(
                "\"other.use\"(%new{}) : ({ty}) -> ()\n",
                self.fresh
            ));
        }
        for _ in 0..self.random.below(3) {
            let statement = match self.random.below(3) {
                0 if depth > 0 => self.foreign(depth - 1),
                _ => {
                    let number = self.random.below(OPS.len());
                    match &OPS[number] {
                        op if op.syntax == Syntax::Instruction => self.instruction(op),
                        _ => "\"other.leaf\"() : () -> ()".to_owned(),
                    }
                }
            };
            out.push_str(&format!("{statement}\n"));
        }
        out.push_str(&argument.unwrap_or_default());
        if self.random.percent(20) {
            self.fresh += 1;
            out.push_str(&format!(
                "\"other.branch\"()[^new{0}] : () -> ()\n^new{0}: // target\n\"other.end\"() : () -> ()\n",
                self.fresh
            ));
        }
        out
    }

    /// A value every statement sees, and its type as the generic form states it.
    fn typed_name(&mut self) -> (String, String) {
        let pool = self.random.pick(&[TILES, REGISTERS, INDICES]);
        let name = self.random.pick(pool);
        let head = format!("%{name} = alloc ");
        let ty = match PRELUDE
            .lines()
            .find_map(|line| line.trim().strip_prefix(&head))
        {
            Some(rest) => {
                let (space, rest) = rest.split_once('<').expect("a shape");
                let (shape, _) = rest.split_once('>').expect("a closed shape");
                format!("!bir.mem<{space}, {shape}>")
            }
            None if INDICES.contains(&name) => "index".to_owned(),
            None => "!bir.reg<i32>".to_owned(),
        };
        (format!("%{name}"), ty)
    }

    /// A word of an op's or operand's enum attribute.
    fn word(&mut self, op: &OpDef, attr: &str) -> Option<String> {
        let def = op.attr(attr);
        if def.is_some_and(|def| !def.required) && self.random.percent(40) {
            return None;
        }
        match def.map(|def| def.ty) {
            Some(AttrType::Enum(words)) if !self.random.percent(2) => {
                Some(self.random.pick(words.words).to_owned())
            }
            _ => Some("mystery".to_owned()),
        }
    }

    fn operand(&mut self, op: &OpDef, operand: &OperandDef) -> String {
        let mut out = String::new();
        if let Some(keyword) = operand.keyword
            && !self.random.percent(2)
        {
            out.push_str(keyword);
            out.push(' ');
        }
        for word in operand.words {
            if let Some(word) = self.word(op, word) {
                out.push_str(&word);
                out.push(' ');
            }
        }
        match operand.kind {
            Kind::RegIn | Kind::RegOut => out.push_str(&self.register()),
            Kind::RegImm if self.random.percent(50) => out.push_str(&self.int()),
            Kind::RegImm => out.push_str(&self.register()),
            Kind::Imm(ty) if self.random.percent(55) => out.push_str(&self.immediate(ty)),
            _ => out.push_str(&self.place()),
        }
        out
    }

    fn register(&mut self) -> String {
        let names = if self.random.percent(96) {
            REGISTERS
        } else {
            TILES
        };
        format!("%{}", self.random.pick(names))
    }

    fn immediate(&mut self, ty: ImmType) -> String {
        match (ty, self.random.below(10)) {
            (_, 0) => self.int(),
            (_, 1..4) => self.float(),
            (ImmType::Alu, 4..7) => self.random.pick(&["1", "2", "255", "0x1F"]).to_owned(),
            _ => self
                .random
                .pick(&["1.0", "0.5", "-2.0", "1e-5", "inf", "0.1"])
                .to_owned(),
        }
    }

    fn int(&mut self) -> String {
        let common = self.random.percent(85);
        let end = if common { 17 } else { INTS.len() };
        INTS[self.random.below(end)].to_owned()
    }

    fn float(&mut self) -> String {
        self.random.pick(FLOATS).to_owned()
    }

    fn index(&mut self) -> &'static str {
        self.random.pick(INDICES)
    }

    fn affine(&mut self) -> String {
        let int = self.int();
        let index = self.index();
        match self.random.below(9) {
            0 => format!("%{index}"),
            1 => format!("{int}*%{index}"),
            2 => format!("%{index}*{int}"),
            3 => format!("{int}*%{index} + {}", self.int()),
            4 => format!("{int} - 2*%{index}"),
            5 => format!("2*%k+%l-{int}"),
            6 => format!("-%{index} + {int}"),
            _ => int,
        }
    }

    fn place(&mut self) -> String {
        let name = if self.random.percent(1) {
            "nowhere"
        } else {
            self.random.pick(TILES)
        };
        let mut out = format!("%{name}");
        if self.random.percent(6) {
            out.push_str(&format!(" as {}", self.dtype()));
        }
        match self.random.below(12) {
            0 => {
                let rank = if name == "deep" { 5 } else { 2 };
                let rank = if self.random.percent(4) {
                    rank + 1
                } else {
                    rank
                };
                let entries: Vec<String> = (0..rank).map(|_| self.slice()).collect();
                out.push_str(&format!("[{}]", entries.join(", ")));
            }
            1 => out.push_str(self.random.pick(&[
                "[:, :]",
                "[0:64, 0:256]",
                "[0:128, 3]",
                "[:, ::2]",
                "[:, 128*%k +: 128]",
                "[32:64, 0:16:4]",
                "[0:128, 0:1]",
                "[:,0:512]",
                "[:, %l +: 2]",
                "[32*%k +: 32, :]",
                "[:, %k:%k]",
            ])),
            2 => out.push_str(self.random.pick(&[
                "[p 0:128, off 511, -1 x 512]",
                "[p 0:64, off 16, 256 x 2, 1 x 64]",
                "[off 0, 512 x 128, 1 x 512]",
                "[p 0:128, off 0, 0 x 4, 1 x 1]",
                "[p 32*%k +: 32, off 2*%l, 1 x 4]",
                "[p 0:128, off 0]",
                "[p 0:128, off 0, 1 x 2, 1 x 2, 1 x 2, 1 x 2, 1 x 2]",
            ])),
            3 if self.random.percent(30) => {
                let (window, offset) = (self.affine(), self.affine());
                let pairs: Vec<String> = (0..self.random.below(5))
                    .map(|_| format!("{} x {}", self.int(), self.int()))
                    .collect();
                out.push_str(&format!(
                    "[p {window}:{}, off {offset}{}{}]",
                    self.int(),
                    if pairs.is_empty() { "" } else { ", " },
                    pairs.join(", ")
                ));
            }
            _ => {}
        }
        out
    }

    fn slice(&mut self) -> String {
        match self.random.below(8) {
            0 => ":".to_owned(),
            1 => self.affine(),
            2 => format!("{}:{}", self.affine(), self.affine()),
            3 => format!("{} +: {}", self.affine(), self.int()),
            4 => format!("{} +: {}:{}", self.affine(), self.int(), self.int()),
            5 => format!("{}:", self.int()),
            6 => format!("::{}", self.int()),
            _ => format!("{}:{}:{}", self.int(), self.int(), self.int()),
        }
    }

    fn dtype(&mut self) -> &'static str {
        if self.random.percent(4) {
            return self.random.pick(&["f33", "f8e4m", "index", "F32"]);
        }
        DType::ALL[self.random.below(DType::ALL.len())].name()
    }

    fn entries(&mut self, op: &OpDef) -> Vec<String> {
        let in_words: Vec<&str> = op
            .words
            .iter()
            .copied()
            .chain(op.operands.iter().flat_map(|o| o.words.iter().copied()))
            .collect();
        let mut entries = Vec::new();
        for attr in op.attrs {
            let said = in_words.contains(&attr.name);
            let wanted = if said {
                self.random.percent(1)
            } else {
                attr.required || self.random.percent(25)
            };
            if wanted {
                entries.push(self.entry(attr));
            }
        }
        for attr in COMMON_ATTRS {
            if self.random.percent(5) {
                entries.push(self.entry(attr));
            }
        }
        if self.random.percent(10) {
            let value = self.any_attr();
            entries.push(format!("x.note = {value}"));
        }
        if self.random.percent(3) {
            let value = self.any_attr();
            entries.push(format!("\"x.weird key\" = {value}"));
        }
        if self.random.percent(2) {
            entries.push(
                self.random
                    .pick(&[
                        "x.note",
                        "unknown = 1",
                        "id = 4",
                        "operandSegmentSizes = 1",
                        "if = 1",
                        "engine = dve",
                    ])
                    .to_owned(),
            );
        }
        entries
    }

    fn entry(&mut self, attr: &AttrDef) -> String {
        let name = attr.name;
        if self.random.percent(4) {
            return format!("{name} = {}", self.any_attr());
        }
        let value = match attr.ty {
            AttrType::Flag => {
                return self
                    .random
                    .pick(&[
                        name,
                        name,
                        name,
                        &format!("{name} = true"),
                        &format!("{name} = false"),
                    ])
                    .to_owned();
            }
            AttrType::Int { min, max } => {
                let span = (max.saturating_sub(min)).clamp(1, 64) as usize;
                (min + self.random.below(span) as i64).to_string()
            }
            AttrType::Number(_) => self.float(),
            AttrType::Enum(words) => {
                let word = self.random.pick(words.words);
                if self.random.percent(50) {
                    word.to_owned()
                } else {
                    format!("\"{word}\"")
                }
            }
            AttrType::IntList { min, .. } => format!("[{}, {}]", min.max(0), min.max(0) + 1),
            AttrType::Pattern => self
                .random
                .pick(&["[[1, 512]]", "[[0, 1]]", "[[256, 2], [1, 256]]"])
                .to_owned(),
            AttrType::Str => self.random.pick(STRINGS).to_owned(),
            AttrType::Symbol => self.random.pick(&["@main", "@a.b", "@\"q r\""]).to_owned(),
            AttrType::DType => self.dtype().to_owned(),
            AttrType::Accumulate => self
                .random
                .pick(&[
                    "true",
                    "unless_first(%k)",
                    "unless_first(%l)",
                    "unless_first(%t)",
                ])
                .to_owned(),
            AttrType::Waits => format!("[{} >= {}]", self.random.below(9), self.int()),
            AttrType::Signals => self
                .random
                .pick(&["[6 += 1 @complete]", "[4 := 0, 3 -= 2 @read]", "[2 += 1]"])
                .to_owned(),
            AttrType::Placement => self
                .random
                .pick(&[
                    "[64, 0x1200]",
                    "[0, bank 3]",
                    "0x4000",
                    "#bir.at<64, 0x1200>",
                ])
                .to_owned(),
            AttrType::Data => self.any_attr(),
            AttrType::RankGroups => self
                .random
                .pick(&["[[0, 1], [2, 3]]", "[[0]]", "[]"])
                .to_owned(),
        };
        format!("{name} = {value}")
    }

    fn any_attr(&mut self) -> String {
        match self.random.below(10) {
            0 | 1 => self.int(),
            2 => self.float(),
            3 | 4 => self.random.pick(STRINGS).to_owned(),
            _ => self.random.pick(ATTRS).to_owned(),
        }
    }

    /// A byte or two gone wrong.
    fn damaged(&mut self, text: &str) -> String {
        let chars: Vec<char> = text.chars().collect();
        let at = self.random.below(chars.len());
        let mut out: String = chars[..at].iter().collect();
        match self.random.below(3) {
            0 => out.push(chars[(at + 1) % chars.len()]),
            1 => out.push_str(self.random.pick(&[
                "(", "]", "}", "<", ",", "\"", "%", "@", "^", "=", "//", ":", "é", "0", "x", "-",
                "as ",
            ])),
            _ => {}
        }
        out.extend(&chars[(at + 1).min(chars.len())..]);
        out
    }

    /// The text with some names, numbers and strings replaced by others: its shape stays, what fills it does not.
    pub fn variant(&mut self, text: &str) -> String {
        let bytes = text.as_bytes();
        let mut renamed: HashMap<&str, usize> = HashMap::new();
        let word = |c: u8| c.is_ascii_alphanumeric() || c == b'_' || c == b'$';
        let mut out = String::new();
        let mut at = 0;
        while at < bytes.len() {
            let c = bytes[at];
            let start = at;
            if c == b'%' || c == b'^' {
                at += 1;
                while at < bytes.len()
                    && (word(bytes[at]) || bytes[at] == b'.' || bytes[at] == b'-')
                {
                    at += 1;
                }
                let name = &text[start + 1..at];
                let pool = if INDICES.contains(&name) {
                    INDICES
                } else if REGISTERS.contains(&name) {
                    REGISTERS
                } else {
                    TILES
                };
                if name.starts_with("new") {
                    let number = *renamed.entry(name).or_insert_with(|| {
                        self.fresh += 1;
                        self.fresh
                    });
                    out.push_str(&format!("{}new{number}", c as char));
                } else if c == b'%' && self.random.percent(25) {
                    out.push('%');
                    out.push_str(self.random.pick(pool));
                } else {
                    out.push_str(&text[start..at]);
                }
            } else if c.is_ascii_digit() {
                while at < bytes.len() && (word(bytes[at]) || bytes[at] == b'.') {
                    at += 1;
                }
                let number = &text[start..at];
                let replace = self.random.percent(30);
                if number.bytes().all(|c| c.is_ascii_digit()) && replace {
                    out.push_str(&self.int());
                } else if number.contains('.') && replace {
                    out.push_str(&self.float());
                } else {
                    out.push_str(number);
                }
            } else if c == b'"' {
                at += 1;
                while at < bytes.len() && bytes[at] != b'"' && bytes[at] != b'\n' {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(bytes.len());
                while !text.is_char_boundary(at) {
                    at += 1;
                }
                if self.random.percent(20) {
                    out.push_str(self.random.pick(STRINGS));
                } else {
                    out.push_str(&text[start..at]);
                }
            } else if word(c) {
                while at < bytes.len() && word(bytes[at]) {
                    at += 1;
                }
                out.push_str(&text[start..at]);
            } else {
                at += 1;
                while !text.is_char_boundary(at) {
                    at += 1;
                }
                out.push_str(&text[start..at]);
            }
        }
        out
    }
}

/// The text with bytes, lines and pieces changed, as a file damaged or edited in haste.
pub fn mutated(random: &mut Random, text: &str) -> String {
    const PIECES: &[&str] = &[
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "<",
        ">",
        "\"",
        "%",
        "@",
        "^",
        "#",
        "!",
        "=",
        ",",
        ":",
        "<-",
        "->",
        "//",
        "\n",
        "\r",
        "\t",
        " ",
        "\0",
        "é",
        "\u{202e}",
        "({",
        "})",
        "loop ",
        "%x",
        "-1",
        "0x",
        "99999999999999999999",
        "dense<",
        "loc(",
        "as ",
        "bir.module",
        "bir.func @f {",
        "^bb0:",
        "\"bir.alloc\"",
        ": () -> ()",
        "{-#",
        "#-}",
        "#a = ",
        "!b = ",
        "// -----",
        "unless_first(",
        "[[[[[[",
        "at [",
    ];
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..random.below(6) + 1 {
        if chars.is_empty() {
            break;
        }
        let at = random.below(chars.len());
        let len = random.below(40).min(chars.len() - at);
        match random.below(8) {
            0 => {
                chars.remove(at);
            }
            1 | 2 => {
                let piece = random.pick(PIECES);
                chars.splice(at..at, piece.chars());
            }
            3 => {
                chars.drain(at..at + len);
            }
            4 => {
                let copy: Vec<char> = chars[at..at + len].to_vec();
                let to = random.below(chars.len());
                chars.splice(to..to, copy);
            }
            5 => chars.truncate(at),
            6 => chars[at] = char::from(random.below(128) as u8),
            _ => {
                let other = random.below(chars.len());
                chars.swap(at, other);
            }
        }
    }
    chars.into_iter().collect()
}
