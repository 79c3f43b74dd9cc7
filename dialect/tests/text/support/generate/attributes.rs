//! Dictionaries.

use bir_dialect::bir::ops::{AttrDef, AttrType, COMMON_ATTRS, OpDef};

use super::Generator;
use super::words::{ATTRS, STRINGS};

impl Generator {
    pub(super) fn entries(&mut self, op: &OpDef) -> Vec<String> {
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

    pub(super) fn entry(&mut self, attr: &AttrDef) -> String {
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

    pub(super) fn any_attr(&mut self) -> String {
        match self.random.below(10) {
            0 | 1 => self.int(),
            2 => self.float(),
            3 | 4 => self.random.pick(STRINGS).to_owned(),
            _ => self.random.pick(ATTRS).to_owned(),
        }
    }
}
