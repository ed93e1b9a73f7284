//! Values that are arrays of numbers, said so that others than the program can read them.

use std::any::TypeId;

use crate::{Field, Protect};

/// The type of the numbers in an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Protect)]
pub enum Element {
    /// One byte, 0 or 1.
    Bool,
    /// `u8`.
    U8,
    /// `u16`.
    U16,
    /// `u32`.
    U32,
    /// `u64`.
    U64,
    /// `i8`.
    I8,
    /// `i16`.
    I16,
    /// `i32`.
    I32,
    /// `i64`.
    I64,
    /// `f32`.
    F32,
    /// `f64`.
    F64,
}

impl Element {
    /// That of values of type `T`, if these are such numbers; `usize` is what it is on this processor.
    pub fn of<T: 'static>() -> Option<Self> {
        let (unsigned, signed) = match size_of::<usize>() {
            8 => (Self::U64, Self::I64),
            _ => (Self::U32, Self::I32),
        };
        let all = [
            (TypeId::of::<bool>(), Self::Bool),
            (TypeId::of::<u8>(), Self::U8),
            (TypeId::of::<u16>(), Self::U16),
            (TypeId::of::<u32>(), Self::U32),
            (TypeId::of::<u64>(), Self::U64),
            (TypeId::of::<usize>(), unsigned),
            (TypeId::of::<i8>(), Self::I8),
            (TypeId::of::<i16>(), Self::I16),
            (TypeId::of::<i32>(), Self::I32),
            (TypeId::of::<i64>(), Self::I64),
            (TypeId::of::<isize>(), signed),
            (TypeId::of::<f32>(), Self::F32),
            (TypeId::of::<f64>(), Self::F64),
        ];
        all.into_iter().find_map(|(id, element)| (id == TypeId::of::<T>()).then_some(element))
    }

    /// Its name in Rust.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::F32 => "f32",
            Self::F64 => "f64",
        }
    }

    /// Bytes of one.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Bool | Self::U8 | Self::I8 => 1,
            Self::U16 | Self::I16 => 2,
            Self::U32 | Self::I32 | Self::F32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }
}

/// What a value is as an array.
#[derive(Clone, Debug, PartialEq, Eq, Field)]
pub struct Array {
    /// What it consists of.
    pub element: Element,
    /// Its length in each dimension, the slowest one first; none for a number alone.
    pub lengths: Vec<u64>,
    /// It has two dimensions, and the first one is the fastest in memory.
    pub by_columns: bool,
}

impl Array {
    /// A number alone, if `T` is one.
    pub fn one<T: 'static>() -> Option<Self> {
        Some(Self { element: Element::of::<T>()?, lengths: vec![], by_columns: false })
    }

    /// So many of these, one after the other; none if that is no array in any usual order.
    #[must_use]
    pub fn times(mut self, count: usize) -> Option<Self> {
        self.lengths.insert(0, count as u64);
        (!self.by_columns).then_some(self)
    }

    /// Bytes of all elements; none if there cannot be so many.
    pub fn bytes(&self) -> Option<u64> {
        self.lengths.iter().try_fold(self.element.bytes(), |bytes, length| bytes.checked_mul(*length))
    }
}
