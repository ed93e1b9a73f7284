use super::*;
use proptest::prelude::*;

/// A layout and the elements that it is to name, by definition.
type Case = (Layout, Vec<usize>);

fn strided() -> impl Strategy<Value = Case> {
    (0usize..9, 0usize..6, 0usize..5, 0usize..8).prop_map(|(start, count, block, stride)| {
        let list = (0..count).flat_map(|i| (0..block).map(move |j| start + i * stride + j)).collect();
        (Layout::strided(start, count, block, stride).unwrap(), list)
    })
}

fn subarray() -> impl Strategy<Value = Case> {
    // Often the full width, so that pieces of several rows are adjacent.
    let dimension = (0usize..5, 0usize..5, 0usize..5, any::<bool>()).prop_map(|(n, start, extent, full)| {
        let start = if full { 0 } else { start.min(n) };
        (n, start, if full { n } else { extent.min(n - start) })
    });
    proptest::collection::vec(dimension, 0..5).prop_map(|dimensions| {
        let shape: Vec<usize> = dimensions.iter().map(|d| d.0).collect();
        let start: Vec<usize> = dimensions.iter().map(|d| d.1).collect();
        let extent: Vec<usize> = dimensions.iter().map(|d| d.2).collect();
        // Every index of the part, the last dimension fastest.
        let list = dimensions.iter().fold(vec![0], |list, (n, start, extent)| {
            list.iter().flat_map(|at| (*start..start + extent).map(move |i| at * n + i)).collect()
        });
        (Layout::subarray(&shape, &start, &extent).unwrap(), list)
    })
}

fn indexed() -> impl Strategy<Value = Case> {
    let block = (0usize..30, 0usize..4).prop_map(|(start, length)| start..start + length);
    proptest::collection::vec(block, 0..7).prop_map(|blocks| {
        let list = blocks.iter().cloned().flatten().collect();
        (Layout::indexed(blocks).unwrap(), list)
    })
}

fn any_layout() -> impl Strategy<Value = Case> {
    let contiguous = (0usize..9, 0usize..9).prop_map(|(start, end)| {
        #[expect(clippy::reversed_empty_ranges, reason = "they are empty, and that is to be seen")]
        let range = if start > end { 3..2 } else { start..end };
        (Layout::contiguous(range.clone()), range.collect())
    });
    prop_oneof![contiguous, strided(), subarray(), indexed()]
}

/// The longest runs of a list of elements.
fn runs(list: &[usize]) -> Vec<Range<usize>> {
    let mut runs: Vec<Range<usize>> = vec![];
    for &at in list {
        match runs.last_mut() {
            Some(run) if run.end == at => run.end += 1,
            _ => runs.push(at..at + 1),
        }
    }
    runs
}

proptest! {
    #[test]
    fn a_layout_is_its_list_of_elements((layout, list) in any_layout()) {
        let pieces: Vec<Range<usize>> = layout.iter().collect();
        prop_assert_eq!(&pieces, &runs(&list));
        prop_assert_eq!(layout.pieces(), pieces.len());
        prop_assert_eq!(layout.len(), list.len());
        prop_assert_eq!(layout.is_empty(), list.is_empty());
        prop_assert_eq!(layout.end(), list.iter().max().map_or(0, |last| last + 1));
        let mut distinct = list.clone();
        distinct.sort_unstable();
        distinct.dedup();
        prop_assert_eq!(layout.overlaps_itself(), distinct.len() < list.len());
        prop_assert_eq!(&layout, &Layout::indexed(pieces).unwrap());
    }

    #[test]
    fn every_element_is_located((layout, list) in any_layout()) {
        for (offset, &element) in list.iter().enumerate() {
            let (k, within) = layout.locate(offset);
            prop_assert_eq!(layout.piece(k).start + within, element);
            prop_assert!(within < layout.piece(k).len());
            let rest: Vec<usize> = layout.iter_from(offset).flatten().collect();
            prop_assert_eq!(&rest[..], &list[offset..]);
        }
        prop_assert_eq!(layout.locate(list.len()), (layout.pieces(), 0));
        prop_assert_eq!(layout.iter_from(list.len()).count(), 0);
    }

    #[test]
    fn bytes_are_those_of_the_elements((layout, list) in any_layout(), size in 0usize..5) {
        let bytes: Vec<usize> = list.iter().flat_map(|at| at * size..(at + 1) * size).collect();
        let scaled = layout.scaled(size).unwrap();
        prop_assert_eq!(scaled.iter().collect::<Vec<_>>(), runs(&bytes));
        prop_assert_eq!((scaled.len(), scaled.pieces()), (bytes.len(), runs(&bytes).len()));
        prop_assert_eq!(scaled.end(), bytes.iter().max().map_or(0, |last| last + 1));
        for offset in 0..=bytes.len() {
            let rest: Vec<usize> = scaled.iter_from(offset).flatten().collect();
            prop_assert_eq!(&rest[..], &bytes[offset..]);
        }
    }

    #[test]
    fn what_is_gathered_is_scattered_to_its_places((layout, list) in any_layout()) {
        let from: Vec<usize> = (100..100 + layout.end()).collect();
        let mut packed = vec![7];
        layout.gather(&from, &mut packed);
        let due: Vec<usize> = [7].into_iter().chain(list.iter().map(|at| from[*at])).collect();
        prop_assert_eq!(&packed, &due);
        let mut into = vec![0; layout.end() + 2];
        layout.scatter(&packed[1..], &mut into);
        for (at, value) in into.into_iter().enumerate() {
            prop_assert_eq!(value, if list.contains(&at) { from[at] } else { 0 });
        }
    }

    #[test]
    fn hostile_numbers_are_refused_and_never_panic(numbers in proptest::collection::vec(hostile(), 9),
                                                   size in hostile()) {
        let made = [
            Layout::strided(numbers[0], numbers[1], numbers[2], numbers[3]),
            Layout::subarray(&numbers[..3], &numbers[3..6], &numbers[6..]),
            Layout::indexed(numbers.chunks(2).map(|pair| pair[0]..*pair.last().unwrap()).collect()),
            Ok(Layout::contiguous(numbers[0]..numbers[1])),
        ];
        for layout in made.into_iter().flatten() {
            let ends = [0, layout.pieces().saturating_sub(1)];
            for k in ends.into_iter().filter(|k| *k < layout.pieces()) {
                prop_assert!(layout.piece(k).end <= layout.end());
                prop_assert!(layout.piece(k).start < layout.piece(k).end);
            }
            layout.overlaps_itself();
            prop_assert_eq!(layout.locate(layout.len()), (layout.pieces(), 0));
            if let Ok(scaled) = layout.scaled(size) {
                prop_assert_eq!(Some(scaled.len()), layout.len().checked_mul(size));
            }
        }
    }
}

fn hostile() -> impl Strategy<Value = usize> {
    let half = 1usize << (usize::BITS / 2);
    prop_oneof![0usize..4, half - 1..half + 2, usize::MAX - 2..=usize::MAX, any::<usize>()]
}

#[test]
fn faces_of_a_block_have_few_pieces() {
    let shape = [4, 5, 6];
    let pieces = |start: [usize; 3], extent: [usize; 3]| {
        let face = Layout::subarray(&shape, &start, &extent).unwrap();
        (face.pieces(), face.piece(0))
    };
    assert_eq!(pieces([3, 0, 0], [1, 5, 6]), (1, 90..120));
    assert_eq!(pieces([0, 4, 0], [4, 1, 6]), (4, 24..30));
    assert_eq!(pieces([0, 0, 5], [4, 5, 1]), (20, 5..6));
    assert_eq!(pieces([0, 0, 0], [4, 5, 6]), (1, 0..120));
    // Columns of whole planes are one stride, so that a piece is found in one step.
    let face = Layout::subarray(&shape, &[0, 0, 5], &[4, 5, 1]).unwrap();
    assert!(matches!(&face.pieces, Pieces::Regular { axes, .. } if axes.len() == 1));
}

#[test]
fn errors_say_what_is_wrong() {
    let text = |result: Result<Layout, LayoutError>| result.unwrap_err().to_string();
    assert_eq!(text(Layout::strided(1, usize::MAX, 2, 0)), "the layout is larger than any memory");
    assert_eq!(Layout::strided(0, 2, usize::MAX, 1), Err(LayoutError::TooLarge));
    assert_eq!(Layout::indexed(vec![0..usize::MAX, 0..1]), Err(LayoutError::TooLarge));
    assert_eq!(Layout::contiguous(0..usize::MAX).scaled(2), Err(LayoutError::TooLarge));
    assert_eq!(
        text(Layout::subarray(&[3, 4], &[0, 2], &[3, 3])),
        "3 from 2 on is not within 4, the length of the array in dimension 1"
    );
    assert_eq!(
        Layout::subarray(&[3], &[0, 2], &[3]),
        Err(LayoutError::Dimensions { shape: 1, start: 2, extent: 1 })
    );
    let wide = 1 << (usize::BITS / 2);
    assert_eq!(Layout::subarray(&[wide, wide], &[0, 0], &[1, 1]), Err(LayoutError::TooLarge));
}
