//! Fields of the state in files: which there are, and one of them taken out as an array.

use super::SavedSets;
use crate::disk::DiskError;
use crate::region::{Array, Spread, StatePart};

/// A field of the state in one checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedField {
    /// With the names of the states around it, such as `solver.x`.
    pub name: String,
    /// The part of the state that it is in.
    pub part: StatePart,
    /// What it is to the other ranks.
    pub spread: Spread,
    /// Its type in Rust, without paths.
    pub type_name: String,
    /// What each rank has of it; none where a state has no such field.
    pub ranks: Vec<Option<SavedPiece>>,
}

/// What one rank has of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedPiece {
    /// What it is as an array, if it is one.
    pub array: Option<Array>,
    /// Its bytes in the file.
    pub bytes: u64,
    /// Where these end in the shard, and so does the array.
    end: u64,
}

/// A field that cannot be taken out of files.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    /// A file cannot be read, or is damaged.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// Files of a build that did not tell fields.
    #[error(
        "the files of checkpoint {number} do not tell the fields in them: an older build has written them"
    )]
    Untold {
        /// The checkpoint.
        number: u32,
    },
    /// There is no such field.
    #[error("checkpoint {number} has no field {name}; there are: {known}")]
    Unknown {
        /// The checkpoint.
        number: u32,
        /// What was asked for.
        name: String,
        /// The names of all fields.
        known: String,
    },
    /// There is no such rank, or it has no such field.
    #[error("rank {rank} has no field {name} in a checkpoint of {ranks} ranks")]
    NoRank {
        /// The field.
        name: String,
        /// What was asked for.
        rank: usize,
        /// Ranks of the checkpoint.
        ranks: usize,
    },
    /// It is no array of numbers.
    #[error("the field {name} is of type {type_name}, no array of numbers: only the program can read it")]
    Opaque {
        /// The field.
        name: String,
        /// Its type.
        type_name: String,
    },
    /// It is a value of each rank alone.
    #[error("the field {name} is private, another one on each of the {ranks} ranks: say which by --rank")]
    Private {
        /// The field.
        name: String,
        /// Ranks of the checkpoint.
        ranks: usize,
    },
    /// Its blocks do not make an array.
    #[error("the blocks of the field {name} on {ranks} ranks do not make one array: take one by --rank")]
    Ragged {
        /// The field.
        name: String,
        /// Ranks of the checkpoint.
        ranks: usize,
    },
}

/// A field of a checkpoint, about to be taken out.
#[derive(Debug)]
pub struct SavedArray<'a> {
    /// What it is: its elements come row by row, whatever order the program has them in.
    pub array: Array,
    sets: &'a SavedSets,
    number: u32,
    part: StatePart,
    /// By rank what is taken of it.
    pieces: Vec<(usize, SavedPiece)>,
}

impl SavedField {
    /// Bytes of all ranks in files.
    pub fn bytes(&self) -> u64 {
        self.ranks.iter().flatten().map(|piece| piece.bytes).sum()
    }

    /// The array of all ranks: one block after the other, or the one that all have. None if it is no array, or blocks do not fit.
    pub fn joined(&self) -> Option<Array> {
        let pieces: Vec<&SavedPiece> = self.ranks.iter().map(Option::as_ref).collect::<Option<_>>()?;
        joined(if self.spread == Spread::Replicated { &pieces[..1] } else { &pieces })
    }
}

/// The array that pieces make, one behind the other.
fn joined(pieces: &[&SavedPiece]) -> Option<Array> {
    let mut arrays = pieces.iter().map(|piece| piece.array.as_ref());
    let mut all = Array { by_columns: false, ..arrays.next()??.clone() };
    if pieces.len() == 1 {
        return Some(all);
    }
    // A number on each rank.
    if all.lengths.is_empty() {
        all.lengths.push(1);
    }
    for array in arrays {
        let (first, rest) = array?.lengths.split_first().unwrap_or((&1, &[]));
        if array?.element != all.element || all.lengths[1..] != *rest {
            return None;
        }
        all.lengths[0] = all.lengths[0].checked_add(*first)?;
    }
    Some(all)
}

impl SavedSets {
    /// The fields of the state in checkpoint `number`, in the order of the first rank, constant ones first.
    ///
    /// # Errors
    /// Files do not tell them, or cannot be read.
    pub fn fields(&self, number: u32) -> Result<Vec<SavedField>, FieldError> {
        let manifests = self.manifests(number)?;
        let ranks = manifests[0].len();
        let mut fields: Vec<SavedField> = Vec::new();
        for (part, metas) in StatePart::BOTH.into_iter().zip(manifests) {
            for (rank, meta) in metas.into_iter().enumerate() {
                let told = self.read_fields(number, part, rank, meta)?;
                for outline in told.ok_or(FieldError::Untold { number })? {
                    let is_it = |field: &SavedField| field.part == part && field.name == outline.name;
                    let at = fields.iter().position(is_it).unwrap_or(fields.len());
                    if at == fields.len() {
                        let (spread, type_name) = (outline.spread, outline.type_name);
                        let ranks = vec![None; ranks];
                        fields.push(SavedField { name: outline.name, part, spread, type_name, ranks });
                    }
                    let end = outline.start + outline.bytes;
                    let piece = SavedPiece { array: outline.array, bytes: outline.bytes, end };
                    fields[at].ranks[rank].get_or_insert(piece);
                }
            }
        }
        Ok(fields)
    }

    /// The field `name` of checkpoint `number`, of one rank or put together from all.
    ///
    /// # Errors
    /// There is none, or it is no array; blocks of ranks do not make one; files cannot be read.
    pub fn field(&self, number: u32, name: &str, rank: Option<usize>) -> Result<SavedArray<'_>, FieldError> {
        let fields = self.fields(number)?;
        let Some(field) = fields.iter().find(|field| field.name == name) else {
            let known: Vec<&str> = fields.iter().map(|field| &field.name[..]).collect();
            return Err(FieldError::Unknown { number, name: name.into(), known: known.join(", ") });
        };
        let (name, ranks) = (name.to_owned(), field.ranks.len());
        let rank = match field.spread {
            Spread::Private if rank.is_none() && ranks > 1 => {
                return Err(FieldError::Private { name, ranks });
            }
            Spread::Replicated => rank.or(Some(0)),
            _ => rank,
        };
        let wanted = rank.map_or(0..ranks, |rank| rank..rank.saturating_add(1));
        let mut pieces = vec![];
        for rank in wanted {
            let piece = field.ranks.get(rank).cloned().flatten();
            let Some(piece) = piece else { return Err(FieldError::NoRank { name, rank, ranks }) };
            if piece.array.is_none() {
                return Err(FieldError::Opaque { name, type_name: field.type_name.clone() });
            }
            pieces.push((rank, piece));
        }
        let array = joined(&pieces.iter().map(|(_, piece)| piece).collect::<Vec<_>>());
        let array = array.ok_or(FieldError::Ragged { name, ranks })?;
        Ok(SavedArray { array, sets: self, number, part: field.part, pieces })
    }
}

impl SavedArray<'_> {
    /// Its elements, the lowest byte first as the processor has them, a rank at a time; each file is compared with its checksum.
    pub fn pieces(&self) -> impl Iterator<Item = Result<Vec<u8>, DiskError>> {
        self.pieces.iter().map(|(rank, piece)| {
            let (_, shard) = self.sets.read_part(self.number, self.part, *rank)?;
            let array = piece.array.as_ref();
            let bytes = array.and_then(Array::bytes).unwrap_or(0);
            // The outline was compared with the length of the shard.
            let elements = &shard[(piece.end - bytes) as usize..piece.end as usize];
            Ok(array.map_or(vec![], |array| row_by_row(array, elements)))
        })
    }
}

/// The elements of an array in the usual order.
fn row_by_row(array: &Array, elements: &[u8]) -> Vec<u8> {
    let &[rows, columns] = &array.lengths[..] else { return elements.to_vec() };
    if !array.by_columns {
        return elements.to_vec();
    }
    let width = array.element.bytes() as usize;
    let mut turned = Vec::with_capacity(elements.len());
    for row in 0..rows as usize {
        for column in 0..columns as usize {
            turned.extend_from_slice(&elements[(column * rows as usize + row) * width..][..width]);
        }
    }
    turned
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Element;

    fn piece(element: Element, lengths: &[u64]) -> SavedPiece {
        let array = Array { element, lengths: lengths.to_vec(), by_columns: false };
        SavedPiece { array: Some(array), bytes: 0, end: 0 }
    }

    #[test]
    fn blocks_make_an_array_if_they_fit() {
        let of =
            |pieces: &[SavedPiece]| joined(&pieces.iter().collect::<Vec<_>>()).map(|array| array.lengths);
        let f64s = |lengths: &[u64]| piece(Element::F64, lengths);
        assert_eq!(of(&[f64s(&[3]), f64s(&[0]), f64s(&[4])]), Some(vec![7]));
        assert_eq!(of(&[f64s(&[3, 2]), f64s(&[1, 2])]), Some(vec![4, 2]));
        assert_eq!(of(&[f64s(&[]), f64s(&[])]), Some(vec![2]), "a number of each rank");
        assert_eq!(of(&[f64s(&[])]), Some(vec![]), "a number alone");
        assert_eq!(of(&[f64s(&[3, 2]), f64s(&[1, 3])]), None);
        assert_eq!(of(&[f64s(&[3]), piece(Element::F32, &[3])]), None);
        assert_eq!(of(&[f64s(&[u64::MAX]), f64s(&[1])]), None);
        let opaque = SavedPiece { array: None, ..f64s(&[]) };
        assert_eq!(of(&[f64s(&[3]), opaque]), None);
    }

    #[test]
    fn columns_are_turned_into_rows() {
        let array = Array { element: Element::U16, lengths: vec![2, 3], by_columns: true };
        let columns = [11u16, 21, 12, 22, 13, 23].map(u16::to_ne_bytes);
        let rows = [11u16, 12, 13, 21, 22, 23].map(u16::to_ne_bytes);
        assert_eq!(row_by_row(&array, columns.as_flattened()), rows.as_flattened());
        let array = Array { by_columns: false, ..array };
        assert_eq!(row_by_row(&array, rows.as_flattened()), rows.as_flattened());
    }
}
