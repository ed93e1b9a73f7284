//! Central differences on a regular grid, of any even order up to [`ORDER_MAX`].
//!
//! The weights are those of Fornberg, "Generation of finite difference formulas on arbitrarily spaced grids",
//! Math. Comp. 51 (1988), in the closed form that they have on a centered regular grid.

use thiserror::Error;

/// The highest order there is.
pub const ORDER_MAX: usize = 16;

/// An order without a stencil.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("space order {order} is not available: take an even number from 2 to {ORDER_MAX}")]
pub struct OrderError {
    /// The order asked for.
    pub order: usize,
}

/// Points that a stencil reaches to each side: half the order.
///
/// # Errors
/// Unless `order` is even and 2 to [`ORDER_MAX`].
pub fn radius(order: usize) -> Result<usize, OrderError> {
    let available = order.is_multiple_of(2) && (2..=ORDER_MAX).contains(&order);
    available.then_some(order / 2).ok_or(OrderError { order })
}

/// Weights `c` of the second derivative: `u''(x) h^2 = c[0] u(x) + sum_k c[k] (u(x + k h) + u(x - k h))`, with an
/// error of `O(h^order)`. There are `order / 2 + 1` of them.
///
/// # Errors
/// Unless `order` is even and 2 to [`ORDER_MAX`].
pub fn second_derivative(order: usize) -> Result<Vec<f64>, OrderError> {
    let slopes = first_derivative(order)?;
    let sides: Vec<f64> = (1..).zip(slopes).map(|(k, slope)| 2.0 * slope / f64::from(k)).collect();
    let center = -2.0 * sides.iter().sum::<f64>();
    Ok([center].into_iter().chain(sides).collect())
}

/// Weights `d` of the first derivative: `u'(x) h = sum_k d[k - 1] (u(x + k h) - u(x - k h))`, with an error of
/// `O(h^order)`. There are `order / 2` of them.
///
/// # Errors
/// Unless `order` is even and 2 to [`ORDER_MAX`].
pub fn first_derivative(order: usize) -> Result<Vec<f64>, OrderError> {
    let radius = radius(order)?;
    // d_k = (-1)^(k+1) m!^2 / (k (m-k)! (m+k)!), the factorials as a product of k quotients.
    let weight = |k: usize| {
        let quotients: f64 = (1..=k).map(|i| (radius + 1 - i) as f64 / (radius + i) as f64).product();
        let sign = if k.is_multiple_of(2) { -1.0 } else { 1.0 };
        sign * quotients / k as f64
    };
    Ok((1..=radius).map(weight).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_close(got: &[f64], want: &[f64]) {
        assert_eq!(got.len(), want.len());
        for (got, want) in got.iter().zip(want) {
            assert!((got - want).abs() < 1e-15, "{got} is not {want}");
        }
    }

    #[test]
    fn orders_2_4_and_8_are_those_of_the_textbooks() {
        assert_close(&second_derivative(2).unwrap(), &[-2.0, 1.0]);
        assert_close(&second_derivative(4).unwrap(), &[-5.0 / 2.0, 4.0 / 3.0, -1.0 / 12.0]);
        let eight = [-205.0 / 72.0, 8.0 / 5.0, -1.0 / 5.0, 8.0 / 315.0, -1.0 / 560.0];
        assert_close(&second_derivative(8).unwrap(), &eight);
        assert_close(&first_derivative(4).unwrap(), &[2.0 / 3.0, -1.0 / 12.0]);
        assert_close(&first_derivative(6).unwrap(), &[3.0 / 4.0, -3.0 / 20.0, 1.0 / 60.0]);
    }

    /// A stencil of order n is exact for polynomials up to degree n (one more by symmetry).
    #[test]
    fn every_order_is_exact_for_polynomials_of_its_degree() {
        for order in (2..=ORDER_MAX).step_by(2) {
            let (second, first) = (second_derivative(order).unwrap(), first_derivative(order).unwrap());
            for degree in (1..=order as i32 / 2).map(|half| 2 * half) {
                let got: f64 = (0..).zip(&second).map(|(k, c)| 2.0 * c * f64::from(k).powi(degree)).sum();
                let want = if degree == 2 { 2.0 } else { 0.0 };
                let scale: f64 =
                    (0..).zip(&second).map(|(k, c)| 2.0 * c.abs() * f64::from(k).powi(degree)).sum();
                assert!((got - want).abs() < 1e-14 * scale, "order {order}, x^{degree}: {got}");

                let odd = degree - 1;
                let got: f64 = (1..).zip(&first).map(|(k, d)| 2.0 * d * f64::from(k).powi(odd)).sum();
                let want = if odd == 1 { 1.0 } else { 0.0 };
                assert!((got - want).abs() < 1e-14 * scale, "order {order}, x^{odd}: {got}");
            }
        }
    }

    #[test]
    fn odd_too_low_and_too_high_orders_are_refused() {
        for order in [0, 1, 3, 15, 17, 18] {
            assert_eq!(second_derivative(order), Err(OrderError { order }));
        }
    }
}
