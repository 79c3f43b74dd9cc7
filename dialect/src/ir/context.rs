//! What is shared by everything in one [`Ir`](super::Ir): interners and the registered names.

use smallvec::SmallVec;

use super::entity::{Annot, Attr, Dict, Loc, OpName, Str, Type};
use super::intern::{StrInterner, WordInterner};

/// What the generic IR must know of an operation kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct OpTraits {
    /// Ends its block.
    pub terminator: bool,
    /// Values defined outside are not visible inside its regions.
    pub isolated: bool,
}

/// A name an operation can have.
#[derive(Clone, Copy, Debug)]
pub struct OpInfo {
    /// `dialect.mnemonic`
    pub name: Str,
    /// The registering dialect's own number for it; `None` if nobody registered the name.
    pub code: Option<u16>,
    /// Traits, all false where unregistered.
    pub traits: OpTraits,
}

/// Where an operation came from, as the program says (not where its text stands).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourceLoc {
    /// File name.
    pub file: Str,
    /// 1-based line.
    pub line: u32,
    /// 1-based column.
    pub col: u32,
}

/// Interners and registered operation names.
#[derive(Clone)]
pub struct Context {
    strings: StrInterner,
    pub(super) types: WordInterner,
    pub(super) attrs: WordInterner,
    dicts: WordInterner,
    annots: WordInterner,
    locs: WordInterner,
    op_names: Vec<OpInfo>,
    /// `name_of_str[s]` is the operation name spelt `s`.
    name_of_str: Vec<OpName>,
}

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

impl Context {
    /// A context without any dialect.
    pub fn new() -> Context {
        let mut dicts = WordInterner::default();
        dicts.intern(&[]); // Dict::EMPTY
        let mut annots = WordInterner::default();
        annots.intern(&[]); // Annot::UNIT
        Context {
            strings: StrInterner::default(),
            types: WordInterner::default(),
            attrs: WordInterner::default(),
            dicts,
            annots,
            locs: WordInterner::default(),
            op_names: Vec::new(),
            name_of_str: Vec::new(),
        }
    }

    /// Makes room for so many further strings, attributes, dictionaries and annotations of each at once, and
    /// a quarter as many types.
    pub fn reserve(&mut self, distinct: usize) {
        self.strings.reserve(distinct);
        self.types.reserve(distinct / 4);
        for table in [&mut self.attrs, &mut self.dicts, &mut self.annots] {
            table.reserve(distinct);
        }
    }

    /// Makes room for so many further strings, which copies have, too.
    pub fn reserve_strings(&mut self, strings: usize) {
        self.strings.reserve(strings);
    }

    /// Interns a string.
    pub fn str(&mut self, text: &str) -> Str {
        Str(self.strings.intern(text))
    }

    /// The string if it was interned before.
    pub fn find_str(&self, text: &str) -> Option<Str> {
        self.strings.find(text).map(Str)
    }

    /// The text of an interned string.
    #[inline]
    pub fn text(&self, text: Str) -> &str {
        self.strings.get(text.0)
    }

    /// Number of interned strings: a bound for side tables indexed by [`Str`].
    pub fn str_count(&self) -> usize {
        self.strings.len()
    }

    /// Whether strings of `bytes` in total can still be interned.
    pub fn has_room_for(&self, bytes: usize) -> bool {
        self.strings.has_room(bytes)
    }

    /// Registers an operation name; a second registration replaces the first.
    pub fn register_op(&mut self, name: &str, code: u16, traits: OpTraits) -> OpName {
        let op_name = self.op_name(name);
        let info = &mut self.op_names[op_name.index()];
        info.code = Some(code);
        info.traits = traits;
        op_name
    }

    /// The handle of an operation name, registered or not.
    pub fn op_name(&mut self, name: &str) -> OpName {
        let text = self.str(name);
        if self.name_of_str.len() <= text.index() {
            self.name_of_str.resize(text.index() + 1, OpName::NONE);
        }
        if let Some(known) = self.name_of_str[text.index()].some() {
            return known;
        }
        let op_name = OpName::new(self.op_names.len());
        self.op_names.push(OpInfo {
            name: text,
            code: None,
            traits: OpTraits::default(),
        });
        self.name_of_str[text.index()] = op_name;
        op_name
    }

    /// What is known of an operation name.
    #[inline]
    pub fn op_info(&self, name: OpName) -> &OpInfo {
        &self.op_names[name.index()]
    }

    /// All operation names seen so far.
    pub fn op_names(&self) -> impl Iterator<Item = &OpInfo> {
        self.op_names.iter()
    }

    /// Interns an operand annotation.
    #[inline]
    pub fn annot(&mut self, words: &[u64]) -> Annot {
        Annot(self.annots.intern(words))
    }

    /// The words of an annotation.
    #[inline]
    pub fn annot_words(&self, annot: Annot) -> &[u64] {
        self.annots.get(annot.0)
    }

    /// Number of distinct annotations.
    pub fn annot_count(&self) -> usize {
        self.annots.len()
    }

    /// Interns a dictionary. A name given twice keeps its last value.
    pub fn dict(&mut self, entries: &[(Str, Attr)]) -> Dict {
        if entries.is_empty() {
            return Dict::EMPTY;
        }
        let mut words: SmallVec<[u64; 16]> = SmallVec::new();
        let mut sorted = true;
        let mut last = None;
        for &(name, attr) in entries {
            sorted &= last.is_none_or(|last| last < name);
            last = Some(name);
            words.push(entry_word(name, attr));
        }
        if sorted {
            return Dict(self.dicts.intern(&words));
        }
        // A stable sort keeps the order of equal names, so the last one can be told.
        words.sort_by_key(|word| word >> 32);
        let mut out: SmallVec<[u64; 16]> = SmallVec::with_capacity(words.len());
        for word in words {
            match out.last_mut() {
                Some(last) if *last >> 32 == word >> 32 => *last = word,
                _ => out.push(word),
            }
        }
        Dict(self.dicts.intern(&out))
    }

    /// The entries of a dictionary, ordered by name handle.
    pub fn dict_entries(&self, dict: Dict) -> impl ExactSizeIterator<Item = (Str, Attr)> + '_ {
        self.dicts
            .get(dict.0)
            .iter()
            .map(|&word| (Str((word >> 32) as u32), Attr(word as u32)))
    }

    /// The entry `name` of a dictionary.
    #[inline]
    pub fn dict_get(&self, dict: Dict, name: Str) -> Option<Attr> {
        self.dicts
            .get(dict.0)
            .iter()
            .find(|&&word| (word >> 32) as u32 == name.0)
            .map(|&word| Attr(word as u32))
    }

    /// The entry spelt `name` of a dictionary.
    pub fn dict_find(&self, dict: Dict, name: &str) -> Option<Attr> {
        // Dictionaries are short: comparing spellings beats hashing the name.
        self.dict_entries(dict)
            .find(|&(entry, _)| self.text(entry) == name)
            .map(|(_, attr)| attr)
    }

    /// `dict` with `name` set to `attr`, or without it.
    pub fn dict_with(&mut self, dict: Dict, name: Str, attr: Option<Attr>) -> Dict {
        let mut entries: SmallVec<[(Str, Attr); 16]> = self
            .dict_entries(dict)
            .filter(|&(entry, _)| entry != name)
            .collect();
        if let Some(attr) = attr {
            entries.push((name, attr));
        }
        self.dict(&entries)
    }

    /// The entries of both; where both have one of a name, that of `over`.
    pub fn dict_joined(&mut self, dict: Dict, over: Dict) -> Dict {
        if dict == Dict::EMPTY || dict == over {
            return over;
        }
        let entries: SmallVec<[(Str, Attr); 16]> = self
            .dict_entries(dict)
            .chain(self.dict_entries(over))
            .collect();
        self.dict(&entries)
    }

    /// Number of distinct dictionaries.
    pub fn dict_count(&self) -> usize {
        self.dicts.len()
    }

    /// Interns a source location.
    pub fn loc(&mut self, loc: SourceLoc) -> Loc {
        let words = [
            (u64::from(loc.file.0) << 32) | u64::from(loc.line),
            u64::from(loc.col),
        ];
        Loc(self.locs.intern(&words))
    }

    /// The source location behind a handle.
    pub fn source_loc(&self, loc: Loc) -> SourceLoc {
        let words = self.locs.get(loc.0);
        SourceLoc {
            file: Str((words[0] >> 32) as u32),
            line: words[0] as u32,
            col: words[1] as u32,
        }
    }

    /// Number of distinct types.
    pub fn type_count(&self) -> usize {
        self.types.len()
    }

    /// Bytes held by the word interners, for statistics.
    pub fn heap_bytes(&self) -> usize {
        [
            &self.types,
            &self.attrs,
            &self.dicts,
            &self.annots,
            &self.locs,
        ]
        .iter()
        .map(|table| table.heap_bytes())
        .sum()
    }

    /// The type handle behind a row, for side tables indexed by type.
    pub fn type_at(&self, index: usize) -> Option<Type> {
        (index < self.types.len()).then(|| Type::new(index))
    }
}

fn entry_word(name: Str, attr: Attr) -> u64 {
    (u64::from(name.0) << 32) | u64::from(attr.0)
}
