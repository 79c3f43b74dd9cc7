//! What stands in the roles of an instruction: accesses, registers, numbers.

use bir_dialect::bir::num::DType;
use bir_dialect::bir::ops::{AttrType, ImmType, Kind, OpDef, OperandDef};

use super::Generator;
use super::words::{FLOATS, INDICES, INTS, REGISTERS, TILES};

impl Generator {
    /// A word of an op's or operand's enum attribute.
    pub(super) fn word(&mut self, op: &OpDef, attr: &str) -> Option<String> {
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

    pub(super) fn operand(&mut self, op: &OpDef, operand: &OperandDef) -> String {
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

    pub(super) fn register(&mut self) -> String {
        let names = if self.random.percent(96) {
            REGISTERS
        } else {
            TILES
        };
        format!("%{}", self.random.pick(names))
    }

    pub(super) fn immediate(&mut self, ty: ImmType) -> String {
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

    pub(super) fn int(&mut self) -> String {
        let common = self.random.percent(85);
        let end = if common { 17 } else { INTS.len() };
        INTS[self.random.below(end)].to_owned()
    }

    pub(super) fn float(&mut self) -> String {
        self.random.pick(FLOATS).to_owned()
    }

    pub(super) fn index(&mut self) -> &'static str {
        self.random.pick(INDICES)
    }

    pub(super) fn affine(&mut self) -> String {
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

    pub(super) fn place(&mut self) -> String {
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

    pub(super) fn slice(&mut self) -> String {
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

    pub(super) fn dtype(&mut self) -> &'static str {
        if self.random.percent(4) {
            return self.random.pick(&["f33", "f8e4m", "index", "F32"]);
        }
        DType::ALL[self.random.below(DType::ALL.len())].name()
    }
}
