use super::*;
use proptest::prelude::*;

fn any_grid() -> impl Strategy<Value = Grid> {
    proptest::collection::vec((1usize..5, any::<bool>()), 0..5).prop_map(|dims| {
        let (lengths, periodic): (Vec<usize>, Vec<bool>) = dims.into_iter().unzip();
        Grid::new(&lengths, &periodic).unwrap()
    })
}

#[test]
fn twelve_ranks_in_a_grid_that_is_round_one_way() {
    let grid = Grid::new(&[3, 4], &[true, false]).unwrap();
    assert_eq!(grid.coords(6), [1, 2]);
    assert_eq!(grid.rank(&[2, 1]), Some(9));
    assert_eq!(grid.rank(&[-1, 1]), Some(9));
    assert_eq!(grid.rank(&[3, 1]), Some(1));
    assert_eq!((grid.rank(&[0, 4]), grid.rank(&[0, -1])), (None, None));
    assert_eq!(grid.shift(5, 0, 1), (Some(1), Some(9)));
    assert_eq!(grid.shift(10, 0, 2), (Some(2), Some(6)));
    assert_eq!(grid.shift(11, 1, 1), (Some(10), None));
    assert_eq!(grid.neighbors(8), [Some(4), Some(0), None, Some(9)]);
}

#[test]
fn a_grid_without_dimensions_is_one_rank() {
    let grid = Grid::new(&[], &[]).unwrap();
    assert_eq!((grid.size(), grid.coords(0), grid.rank(&[])), (1, vec![], Some(0)));
    assert_eq!(grid.neighbors(0), []);
}

#[test]
fn what_is_no_grid_is_refused() {
    let (given, dimensions) = (1, 2);
    assert_eq!(Grid::new(&[2, 2], &[true]), Err(TopologyError::Dimensions { given, dimensions }));
    assert_eq!(Grid::new(&[2, 0], &[true, true]), Err(TopologyError::Empty { dimension: 1 }));
    let half = 1 << (usize::BITS / 2);
    assert_eq!(Grid::new(&[half, half], &[true, true]), Err(TopologyError::TooLarge));
    assert_eq!(Grid::new(&[usize::MAX], &[true]), Err(TopologyError::TooLarge));
    let grid = Grid::new(&[2, 2], &[true, false]).unwrap();
    assert_eq!(grid.sub(&[true]), Err(TopologyError::Dimensions { given, dimensions }));
}

#[test]
fn far_shifts_do_not_overflow() {
    let ring = Grid::new(&[isize::MAX as usize], &[true]).unwrap();
    let last = ring.size() - 1;
    assert_eq!(ring.shift(last, 0, isize::MAX), (Some(last), Some(last)));
    assert_eq!(ring.shift(0, 0, isize::MIN), (Some(1), Some(last)));
    let line = Grid::new(&[isize::MAX as usize], &[false]).unwrap();
    assert_eq!(line.shift(last, 0, isize::MIN), (None, None));
}

proptest! {
    #[test]
    fn coordinates_count_through_the_grid(grid in any_grid()) {
        // The last coordinate is the fastest, by counting as an odometer does.
        let lengths: Vec<usize> = grid.lengths().collect();
        let mut coords = vec![0; lengths.len()];
        for rank in 0..grid.size() {
            prop_assert_eq!(grid.coords(rank), coords.clone());
            let signed: Vec<isize> = coords.iter().map(|at| *at as isize).collect();
            prop_assert_eq!(grid.rank(&signed), Some(rank));
            for (at, length) in coords.iter_mut().zip(&lengths).rev() {
                *at = (*at + 1) % length;
                if *at > 0 {
                    break;
                }
            }
        }
        prop_assert!(coords.iter().all(|at| *at == 0));
    }

    #[test]
    fn a_shift_is_a_step_of_coordinates(grid in any_grid(), displacement in -9isize..10) {
        for rank in 0..grid.size() {
            for dimension in 0..grid.dimensions() {
                let to = |by: isize| {
                    let mut coords: Vec<isize> = grid.coords(rank).into_iter().map(|at| at as isize).collect();
                    coords[dimension] += by;
                    grid.rank(&coords)
                };
                let (source, dest) = grid.shift(rank, dimension, displacement);
                prop_assert_eq!((source, dest), (to(-displacement), to(displacement)));
                // Whom I send to receives from me.
                if let Some(dest) = dest {
                    prop_assert_eq!(grid.shift(dest, dimension, displacement).0, Some(rank));
                }
                let due = [to(-1), to(1)];
                prop_assert_eq!(&grid.neighbors(rank)[2 * dimension..2 * dimension + 2], &due[..]);
            }
        }
    }

    #[test]
    fn parts_are_grids_of_the_kept_coordinates(grid in any_grid(), seed in any::<u8>()) {
        let keep: Vec<bool> = (0..grid.dimensions()).map(|dimension| seed >> dimension & 1 == 1).collect();
        let sub = grid.sub(&keep).unwrap();
        let pick = |rank: Rank, wanted: bool| -> Vec<usize> {
            let coords = grid.coords(rank).into_iter().zip(&keep);
            coords.filter(|(_, keep)| **keep == wanted).map(|(at, _)| at).collect()
        };
        for one in 0..grid.size() {
            prop_assert_eq!(sub.grid.coords(sub.keys[one]), pick(one, true));
            for two in 0..grid.size() {
                prop_assert_eq!(sub.colors[one] == sub.colors[two], pick(one, false) == pick(two, false));
            }
        }
        let kept: Vec<bool> = grid.periodic().zip(&keep).filter(|(_, keep)| **keep).map(|(p, _)| p).collect();
        prop_assert_eq!(sub.grid.periodic().collect::<Vec<_>>(), kept);
    }
}
