//! Count, mean and standard deviation.

use serde::{Deserialize, Serialize};

/// Count, mean and standard deviation of times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    pub count: f64,
    pub mean_ns: f64,
    pub spread_ns: f64,
}

impl Moments {
    /// Returns the moments of both sets together.
    #[must_use]
    pub fn and(self, other: Moments) -> Moments {
        let count = self.count + other.count;
        if count <= 0.0 {
            return Moments::default();
        }
        let apart_ns = other.mean_ns - self.mean_ns;
        let mean_ns = self.mean_ns + apart_ns * other.count / count;
        let within = self.count * self.spread_ns.powi(2) + other.count * other.spread_ns.powi(2);
        let between = apart_ns.powi(2) * self.count * other.count / count;
        Moments { count, mean_ns, spread_ns: ((within + between) / count).sqrt() }
    }

    /// Returns the sum of the times, in nanoseconds.
    pub fn sum_ns(&self) -> f64 {
        self.count * self.mean_ns
    }

    /// Returns whether every number is one that times can have: neither negative, nor NaN, nor more than 31 years.
    pub fn is_sane(&self) -> bool {
        [self.count, self.mean_ns, self.spread_ns].iter().all(|number| (0.0..1e18).contains(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sets_together_have_the_moments_of_their_union() {
        let of_one = |mean_ns: f64| Moments { count: 1.0, mean_ns, spread_ns: 0.0 };
        let both = of_one(2.0).and(of_one(4.0)).and(of_one(9.0));
        assert_eq!((both.count, both.mean_ns, both.sum_ns()), (3.0, 5.0, 15.0));
        assert!((both.spread_ns - (26.0_f64 / 3.0).sqrt()).abs() < 1e-12, "{both:?}");
        assert_eq!(Moments::default().and(Moments::default()), Moments::default());
    }

    #[test]
    fn a_number_that_no_time_has_is_not_sane() {
        assert!(Moments::default().is_sane());
        for mean_ns in [f64::NAN, -1.0, f64::INFINITY] {
            assert!(!Moments { mean_ns, ..Moments::default() }.is_sane());
        }
    }
}
