//! One user's way through a scenario's pages.

use std::time::Duration;

use whyso_random::{SplitMix64, mix};

use super::{Scenario, Think, ValueSource};

/// Keeps a page's choice apart from the values and times of the same request.
const CHOICE: u64 = 0x70_61_67_65;
const VALUES: u64 = 0x76_61_6c_75;
const TIMES: u64 = 0x74_69_6d_65;

/// Chooses one user's pages, values and think times. They follow from the seed, the user and the number of the request.
#[derive(Clone, Debug)]
pub struct Walk {
    seed: u64,
    user: u64,
    page: Option<usize>,
}

impl Walk {
    pub fn new(seed: u64, user: u64) -> Walk {
        Walk { seed, user, page: None }
    }

    /// Chooses the page of request `number`, by the page before it where that has transitions.
    pub fn next_page(&mut self, scenario: &Scenario, number: u64) -> usize {
        if scenario.pages.len() == 1 {
            self.page = Some(0);
            return 0;
        }
        let mut random = self.random(number, CHOICE);
        let chosen = match self.page {
            Some(page) if !scenario.pages[page].next.is_empty() => {
                draw(scenario.pages[page].next.iter().copied(), &mut random)
            }
            None if scenario.begin.is_some() => scenario.begin,
            _ => draw(scenario.pages.iter().map(|page| page.weight).enumerate(), &mut random),
        };
        let page = chosen.unwrap_or(0);
        self.page = Some(page);
        page
    }

    /// Draws the scenario's own values for request `number`. Values that pages take stay as they are.
    pub fn draw_values(&self, scenario: &Scenario, number: u64, values: &mut [Vec<u8>]) {
        if scenario.value_sources.is_empty() {
            return;
        }
        let mut random = self.random(number, VALUES);
        for (source, value) in scenario.value_sources.iter().zip(values) {
            match source {
                ValueSource::Answer => {}
                ValueSource::User => write_number(value, self.user),
                ValueSource::List(list) => {
                    let place = random.below(list.len() as u64) as usize;
                    value.clear();
                    value.extend_from_slice(list.get(place).map_or("", String::as_str).as_bytes());
                }
                ValueSource::Range { from, to } => {
                    let count = (to - from).saturating_add(1);
                    write_number(value, from + random.below(count));
                }
            }
        }
    }

    /// How long the user waits before request `number`, after the end of the one before; `None`: the scenario leaves that open.
    pub fn think(&self, scenario: &Scenario, number: u64) -> Option<Duration> {
        match scenario.pages[self.page?].think? {
            Think::Fixed(time) => Some(time),
            Think::Exponential(mean) => {
                let uniform = 1.0 - self.random(number, TIMES).unit_f64();
                // At most 16 means: once in nine million draws more would be due.
                Some(mean.mul_f64((-uniform.ln()).min(16.0)))
            }
        }
    }

    /// The least time from the begin of the request before to the begin of the next one.
    pub fn cycle(&self, scenario: &Scenario) -> Option<Duration> {
        scenario.pages[self.page?].cycle
    }

    fn random(&self, number: u64, purpose: u64) -> SplitMix64 {
        SplitMix64::new(mix(self.seed ^ mix(self.user ^ mix(number ^ purpose))))
    }
}

/// One of the places, in proportion to their weights.
fn draw(weights: impl Iterator<Item = (usize, f64)> + Clone, random: &mut SplitMix64) -> Option<usize> {
    let total: f64 = weights.clone().map(|(_, weight)| weight).sum();
    let mut left = random.unit_f64() * total;
    let mut last = None;
    for (place, weight) in weights.filter(|(_, weight)| *weight > 0.0) {
        last = Some(place);
        if left < weight {
            break;
        }
        left -= weight;
    }
    last
}

fn write_number(value: &mut Vec<u8>, mut number: u64) {
    value.clear();
    loop {
        value.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    value.reverse();
}
