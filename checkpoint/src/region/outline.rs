//! Which fields a state has, and where they are in its shard: for people and programs that look into files and do not know the type.
//!
//! An outline has a line for each field of each state within the state, and none for what a field holds: a map of a million entries
//! is one line. It travels as bytes, in the format of all shards.

use serde::{Serialize, de::DeserializeOwned};

use super::walk::Size;
use super::{Array, Field, Protect, ProtectError, StatePart, Walk, load, save};

/// What a field is to the other ranks, as its attribute says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Protect)]
pub enum Spread {
    /// Another value on every rank, of no meaning elsewhere.
    #[default]
    Private,
    /// The same value on all ranks.
    Replicated,
    /// A block of one array, in the order of ranks.
    Distributed,
}

impl Spread {
    /// Its name, as attributes have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Replicated => "replicated",
            Self::Distributed => "distributed",
        }
    }

    /// What a field within one that is this is: it may say more, but all of what is the same on all ranks is.
    fn within(self, said: Option<Self>) -> Self {
        if self == Self::Replicated { self } else { said.unwrap_or(self) }
    }
}

/// One field of one part of a state.
#[derive(Clone, Debug, PartialEq, Eq, Field)]
pub(crate) struct FieldOutline {
    /// With the names of the states around it, such as `solver.x`.
    pub(crate) name: String,
    pub(crate) spread: Spread,
    /// Its type in Rust, without paths.
    pub(crate) type_name: String,
    /// What it is as an array: its last bytes are the elements.
    pub(crate) array: Option<Array>,
    /// Where it begins in the shard.
    pub(crate) start: u64,
    /// Its bytes.
    pub(crate) bytes: u64,
}

/// Fields that are outlined; more than that, as a loop that was written by hand may visit, are not told.
const FIELDS_MAX: usize = 1000;

/// Counts, and takes down the fields.
#[derive(Default)]
struct Outline {
    size: Size,
    /// Names of the states around what is visited.
    path: String,
    spread: Spread,
    fields: Vec<FieldOutline>,
}

impl Outline {
    fn enter(
        &mut self,
        name: &str,
        spread: Option<Spread>,
        visit: impl FnOnce(&mut Self) -> Result<(), ProtectError>,
    ) -> Result<(), ProtectError> {
        let (outer, length) = (self.spread, self.path.len());
        if length > 0 {
            self.path.push('.');
        }
        self.path.push_str(name);
        self.spread = outer.within(spread);
        let visited = visit(self).map_err(|error| error.in_field(name));
        self.path.truncate(length);
        self.spread = outer;
        visited
    }

    fn take_down(
        &mut self,
        name: &str,
        spread: Option<Spread>,
        (type_name, array): (&str, Option<Array>),
        visit: impl FnOnce(&mut Size) -> Result<(), ProtectError>,
    ) -> Result<(), ProtectError> {
        self.enter(name, spread, |outline| {
            let start = outline.offset();
            visit(&mut outline.size)?;
            if outline.fields.len() < FIELDS_MAX {
                outline.fields.push(FieldOutline {
                    name: outline.path.clone(),
                    spread: outline.spread,
                    type_name: without_paths(type_name),
                    array,
                    start: start as u64,
                    bytes: (outline.offset() - start) as u64,
                });
            }
            Ok(())
        })
    }
}

impl Walk for Outline {
    fn bytes(&mut self, bytes: &mut [u8]) -> Result<(), ProtectError> {
        self.size.bytes(bytes)
    }

    fn length(&mut self, items: usize, item_bytes: usize) -> Result<usize, ProtectError> {
        self.size.length(items, item_bytes)
    }

    fn serde<T: Serialize + DeserializeOwned>(&mut self, value: &mut T) -> Result<(), ProtectError> {
        self.size.serde(value)
    }

    fn offset(&self) -> usize {
        self.size.offset()
    }

    fn depth(&mut self) -> &mut usize {
        self.size.depth()
    }

    fn field<T: Field>(
        &mut self,
        name: &str,
        spread: Option<Spread>,
        field: &mut T,
    ) -> Result<(), ProtectError> {
        let what = (std::any::type_name::<T>(), field.array());
        self.take_down(name, spread, what, |size| field.walk(size))
    }

    fn field_by_serde<T: Serialize + DeserializeOwned>(
        &mut self,
        name: &str,
        spread: Option<Spread>,
        field: &mut T,
    ) -> Result<(), ProtectError> {
        let what = (std::any::type_name::<T>(), None);
        self.take_down(name, spread, what, |size| size.serde(field))
    }

    fn nested<P: Protect>(
        &mut self,
        name: &str,
        spread: Option<Spread>,
        part: StatePart,
        state: &mut P,
    ) -> Result<(), ProtectError> {
        self.enter(name, spread, |outline| state.walk(part, outline))
    }
}

/// `alloc::vec::Vec<alloc::string::String>` as `Vec<String>`.
fn without_paths(type_name: &str) -> String {
    let mut short = String::new();
    for (at, piece) in type_name.split("::").enumerate() {
        if at > 0 {
            // What stands before `::` is a path, back to whatever is no part of a name.
            let path = short.rfind(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
            short.truncate(path.map_or(0, |before| before + 1));
        }
        short.push_str(piece);
    }
    short
}

/// The fields of an outline, as a state of their own.
#[derive(Default, Protect)]
struct Written {
    fields: Vec<FieldOutline>,
}

/// The outline of `part` of `state`, which is not changed, as bytes; never empty.
///
/// # Errors
/// As [`size`](super::size).
pub(crate) fn outline<P: Protect>(state: &mut P, part: StatePart) -> Result<Vec<u8>, ProtectError> {
    let mut outline = Outline::default();
    state.walk(part, &mut outline)?;
    let mut bytes = Vec::new();
    save(&mut Written { fields: outline.fields }, StatePart::Variable, &mut bytes)?;
    Ok(bytes)
}

/// Reads what [`outline`] wrote of a shard of so many bytes: every field lies within it.
///
/// # Errors
/// These bytes are no such outline.
pub(crate) fn read_outline(bytes: &[u8], shard_bytes: u64) -> Result<Vec<FieldOutline>, ProtectError> {
    let mut written = Written::default();
    load(&mut written, StatePart::Variable, bytes)?;
    let fits = |field: &FieldOutline| {
        let end = field.start.checked_add(field.bytes);
        let array = field.array.as_ref().map_or(Some(0), Array::bytes);
        end.is_some_and(|end| end <= shard_bytes) && array.is_some_and(|array| array <= field.bytes)
    };
    match written.fields.iter().all(fits) {
        true => Ok(written.fields),
        false => Err(Size::default().invalid("outline of this shard")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    #[derive(Default, Protect)]
    struct Inner {
        #[protect(distributed)]
        x: Vec<f64>,
        count: u32,
        #[protect(private)]
        own: [i16; 3],
    }

    #[derive(Default, Serialize, Deserialize)]
    struct Other {
        names: Vec<String>,
    }

    #[derive(Default, Protect)]
    struct State {
        #[protect(constant, replicated)]
        tolerance: f32,
        #[protect(nested, replicated)]
        same: Inner,
        #[protect(nested)]
        solver: Inner,
        #[protect(nested, distributed)]
        matrix: Inner,
        #[protect(derived)]
        _scratch: Vec<f64>,
        points: Vec<[f64; 3]>,
        flags: Box<[bool]>,
        text: String,
        map: BTreeMap<u32, u32>,
        maybe: Option<u8>,
        pairs: Vec<(u32, f64)>,
        rows: Vec<Vec<f64>>,
        #[protect(serde)]
        other: Other,
        wide: Vec<u128>,
    }

    fn fields(state: &mut State, part: StatePart) -> Vec<FieldOutline> {
        let bytes = outline(state, part).unwrap();
        let mut shard = vec![];
        save(state, part, &mut shard).unwrap();
        read_outline(&bytes, shard.len() as u64).unwrap()
    }

    #[test]
    fn every_field_is_where_its_line_says() {
        let inner = |x: &[f64]| Inner { x: x.to_vec(), count: 7, own: [1, 2, 3] };
        let mut state = State {
            tolerance: 0.5,
            same: inner(&[]),
            solver: inner(&[1.5, 2.5]),
            matrix: inner(&[3.5]),
            points: vec![[1.0, 2.0, 3.0]; 5],
            flags: [true, false].into(),
            text: "text".into(),
            map: [(1, 2)].into(),
            maybe: Some(1),
            rows: vec![vec![1.0]],
            ..State::default()
        };
        let constant = fields(&mut state, StatePart::Constant);
        let shown: Vec<&str> = constant.iter().map(|field| &field.name[..]).collect();
        assert_eq!(shown, ["tolerance"], "nested states that have no constant part add nothing");

        let variable = fields(&mut state, StatePart::Variable);
        let line = |field: &FieldOutline| {
            let array = field.array.as_ref();
            let array = array.map(|array| format!("{} {:?}", array.element.name(), array.lengths));
            let what = array.unwrap_or_else(|| field.type_name.clone());
            format!("{} {} {what} {}", field.name, field.spread.name(), field.bytes)
        };
        let lines: Vec<String> = variable.iter().map(line).collect();
        let due = [
            "same.x replicated f64 [0] 8",
            "same.count replicated u32 [] 4",
            "same.own replicated i16 [3] 6",
            "solver.x distributed f64 [2] 24",
            "solver.count private u32 [] 4",
            "solver.own private i16 [3] 6",
            "matrix.x distributed f64 [1] 16",
            "matrix.count distributed u32 [] 4",
            "matrix.own private i16 [3] 6",
            "points private f64 [5, 3] 128",
            "flags private bool [2] 10",
            "text private String 12",
            "map private BTreeMap<u32, u32> 16",
            "maybe private Option<u8> 2",
            "pairs private Vec<(u32, f64)> 8",
            "rows private Vec<Vec<f64>> 24",
            "other private Other 1",
            "wide private Vec<u128> 8",
        ];
        assert_eq!(lines, due);
        // They follow each other, and the elements are at the end of the field.
        let mut shard = vec![];
        save(&mut state, StatePart::Variable, &mut shard).unwrap();
        let ends = variable.iter().scan(0, |end, field| {
            assert_eq!(field.start, *end, "{}", field.name);
            *end += field.bytes;
            Some(*end)
        });
        assert_eq!(ends.last(), Some(shard.len() as u64));
        let x = &variable[3];
        let end = (x.start + x.bytes) as usize;
        assert_eq!(shard[end - 16..end], bytemuck::cast::<_, [u8; 16]>([1.5, 2.5]));
    }

    #[test]
    fn what_is_within_a_field_takes_no_room() {
        let mut one = State::default();
        let mut many = State {
            map: (0..100_000).map(|key| (key, key)).collect(),
            rows: vec![vec![0.5; 3]; 10_000],
            ..State::default()
        };
        let [one, many] = [&mut one, &mut many].map(|state| outline(state, StatePart::Variable).unwrap());
        assert_eq!(one.len(), many.len());
    }

    #[test]
    fn a_loop_that_visits_many_fields_is_cut_short() {
        struct Loop;
        impl Protect for Loop {
            fn walk<W: Walk>(&mut self, _: StatePart, walk: &mut W) -> Result<(), ProtectError> {
                (0..3000_u32).try_for_each(|mut number| walk.field("number", None, &mut number))
            }
        }
        let bytes = outline(&mut Loop, StatePart::Variable).unwrap();
        let fields = read_outline(&bytes, 12_000).unwrap();
        assert_eq!((fields.len(), fields[999].start), (FIELDS_MAX, 3996));
    }

    #[test]
    fn an_outline_of_another_shard_is_refused() {
        let mut state = State { points: vec![[1.0; 3]; 4], ..State::default() };
        let bytes = outline(&mut state, StatePart::Variable).unwrap();
        let end = super::super::size(&mut state, StatePart::Variable).unwrap() as u64;
        read_outline(&bytes, end).unwrap();
        let error = read_outline(&bytes, end - 1).unwrap_err();
        assert!(error.to_string().contains("not a valid outline of this shard"), "{error}");
        for cut in 0..bytes.len() {
            read_outline(&bytes[..cut], end).expect_err("cut off");
        }
        // An array that is larger than its field.
        let mut fields = read_outline(&bytes, end).unwrap();
        let points = fields.iter_mut().find(|field| field.name == "points").unwrap();
        for lengths in [vec![5, 3], vec![u64::MAX, 3]] {
            points.array.as_mut().unwrap().lengths = lengths;
            let mut bytes = vec![];
            save(&mut Written { fields: vec![points.clone()] }, StatePart::Variable, &mut bytes).unwrap();
            read_outline(&bytes, end).expect_err("too large");
        }
    }

    #[cfg(feature = "nalgebra")]
    #[test]
    fn matrices_have_their_order() {
        use nalgebra::{DMatrix, DVector, Matrix2x3, Vector3};

        use crate::Element;
        let array = |element, lengths: &[u64], by_columns| {
            Some(Array { element, lengths: lengths.to_vec(), by_columns })
        };
        assert_eq!(DVector::<f32>::zeros(4).array(), array(Element::F32, &[4], false));
        assert_eq!(DMatrix::<f64>::zeros(2, 3).array(), array(Element::F64, &[2, 3], true));
        assert_eq!(Matrix2x3::<f64>::zeros().array(), array(Element::F64, &[2, 3], true));
        assert_eq!(vec![Vector3::<f64>::zeros(); 5].array(), array(Element::F64, &[5, 3], false));
        assert_eq!(vec![Matrix2x3::<f64>::zeros(); 5].array(), None);
    }
}
