//! Accesses and index expressions.

use super::{Compiler, Res, span_of};
use crate::bir::num::DType;
use crate::text::grammar::Rule;
use crate::text::recipe::{AccessRecipe, AffineRecipe, IndexSrc, IntSrc, SliceRecipe, WindowEnd};
use pest::iterators::Pair;
use smallvec::SmallVec;

/// `-i64::MIN`
const MIN_MAGNITUDE: &str = "9223372036854775808";

impl Compiler<'_> {
    pub(super) fn affine(&self, pair: Pair<'_, Rule>) -> Res<AffineRecipe> {
        let mut affine = AffineRecipe {
            span: span_of(&pair),
            ..AffineRecipe::default()
        };
        let mut subtract = false;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::plus => subtract = false,
                Rule::minus => subtract = true,
                _ => {
                    let mut index = None;
                    let mut factor = None;
                    let mut negative = subtract;
                    for piece in part.into_inner() {
                        match piece.as_rule() {
                            Rule::minus => negative = !negative,
                            Rule::index => index = Some(self.index(piece)?),
                            // Fits only with its sign, which stands apart from it here.
                            _ if negative && piece.as_str() == MIN_MAGNITUDE => {
                                negative = false;
                                factor = Some(IntSrc::Const(i64::MIN));
                            }
                            _ => factor = Some(self.int(&piece)?),
                        }
                    }
                    match (index, factor) {
                        (Some(index), factor) => affine.terms.push((index, factor, negative)),
                        (None, Some(IntSrc::Const(value))) => {
                            affine.constants.push(IntSrc::Const(if negative {
                                value.wrapping_neg()
                            } else {
                                value
                            }))
                        }
                        (None, Some(IntSrc::Hole { hole, negative: n })) => {
                            affine.constants.push(IntSrc::Hole {
                                hole,
                                negative: n != negative,
                            });
                        }
                        (None, None) => {}
                    }
                }
            }
        }
        Ok(affine)
    }

    pub(super) fn index(&self, pair: Pair<'_, Rule>) -> Res<IndexSrc> {
        let Some(inner) = pair.clone().into_inner().next() else {
            return Err(self.error(&pair, "expected an index"));
        };
        match inner.as_rule() {
            Rule::dim => self.dim(&inner).map(IndexSrc::Dim),
            _ => self.name(&inner).map(IndexSrc::Name),
        }
    }

    pub(super) fn dim(&self, pair: &Pair<'_, Rule>) -> Res<u8> {
        pair.as_str()
            .trim_start_matches('d')
            .parse::<u8>()
            .ok()
            .filter(|&dim| dim < 128)
            .ok_or_else(|| self.error(pair, "index number is above 127"))
    }

    pub(super) fn access(&self, pair: Pair<'_, Rule>) -> Res<AccessRecipe> {
        let mut recast = None;
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::recast => {
                    if let Some(dtype) = part.into_inner().next() {
                        recast = Some(self.dtype(&dtype)?);
                    }
                }
                Rule::raw => return self.raw(part, recast),
                _ => return self.slices(part, recast),
            }
        }
        // `%t as i32`: the whole of it, in another dtype.
        Ok(AccessRecipe::Slices {
            recast,
            slices: Vec::new(),
        })
    }

    pub(super) fn slices(&self, pair: Pair<'_, Rule>, recast: Option<DType>) -> Res<AccessRecipe> {
        let mut slices = Vec::new();
        for part in pair.into_inner() {
            let span = span_of(&part);
            let rule = part.as_rule();
            let mut affines: SmallVec<[AffineRecipe; 2]> = SmallVec::new();
            let mut ints: SmallVec<[IntSrc; 2]> = SmallVec::new();
            let colon = part.as_str().find(':').unwrap_or(0) as u32;
            for piece in part.into_inner() {
                match piece.as_rule() {
                    Rule::affine => affines.push(self.affine(piece)?),
                    _ => ints.push(self.int(&piece)?),
                }
            }
            let mut affines = affines.into_iter();
            let slice = match rule {
                Rule::slice_length => match (affines.next(), ints.first()) {
                    (Some(start), Some(&len)) => {
                        SliceRecipe::Length(start, len, ints.get(1).copied())
                    }
                    _ => SliceRecipe::Range(None, None, None),
                },
                Rule::slice_at => match affines.next() {
                    Some(at) => SliceRecipe::At(at),
                    None => SliceRecipe::Range(None, None, None),
                },
                _ => {
                    let (mut start, mut end) = (None, None);
                    for affine in affines {
                        if affine.span.start < span.start + colon {
                            start = Some(affine);
                        } else {
                            end = Some(affine);
                        }
                    }
                    SliceRecipe::Range(start, end, ints.first().copied())
                }
            };
            slices.push((slice, span));
        }
        Ok(AccessRecipe::Slices { recast, slices })
    }

    pub(super) fn raw(&self, pair: Pair<'_, Rule>, mut recast: Option<DType>) -> Res<AccessRecipe> {
        let mut window = None;
        let mut offset = AffineRecipe::default();
        let mut pairs = Vec::new();
        for part in pair.into_inner() {
            match part.as_rule() {
                Rule::recast => {
                    if let Some(dtype) = part.into_inner().next() {
                        recast = Some(self.dtype(&dtype)?);
                    }
                }
                Rule::window => {
                    let by_length = part.as_str().contains("+:");
                    let mut inner = part.into_inner();
                    if let (Some(start), Some(end)) = (inner.next(), inner.next()) {
                        let start = self.affine(start)?;
                        let end = self.int(&end)?;
                        let end = match by_length {
                            true => WindowEnd::Length(end),
                            false => WindowEnd::End(end),
                        };
                        window = Some(Box::new((start, end)));
                    }
                }
                Rule::offset => {
                    if let Some(affine) = part.into_inner().next() {
                        offset = self.affine(affine)?;
                    }
                }
                _ => {
                    let mut inner = part.into_inner();
                    if let (Some(step), Some(count)) = (inner.next(), inner.next()) {
                        pairs.push((self.int(&step)?, self.int(&count)?));
                    }
                }
            }
        }
        Ok(AccessRecipe::Raw {
            recast,
            window,
            offset: Box::new(offset),
            pairs,
        })
    }
}
