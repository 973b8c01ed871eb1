use super::*;

fn panel(from_s: f64, value: &[f64]) -> PlotPanel {
    let t_s = (0..value.len()).map(|at| from_s + at as f64).collect();
    let line = PlotLine { name: "a<b".into(), t_s, value: value.to_vec(), ..PlotLine::default() };
    PlotPanel { from_s, to_s: from_s + value.len() as f64, lines: vec![line] }
}

fn row(unit: &str, panels: Vec<PlotPanel>) -> PlotRow {
    PlotRow { unit: unit.into(), from_zero: true, panels }
}

fn paths(drawn: &str) -> Vec<&str> {
    drawn.split("class=\"line\" d=\"").skip(1).map(|after| after.split('"').next().unwrap()).collect()
}

#[test]
fn windows_lie_side_by_side_on_one_scale_and_a_gap_stays_one() {
    let panels = vec![panel(0.0, &[1.0, 2.0, f64::NAN, 4.0]), panel(600.0, &[10.0, 5.0])];
    let drawn = plot("t & t", "run", &[row("per second", panels)]);
    let [first, second] = paths(&drawn)[..] else { panic!("{drawn}") };
    assert_eq!(drawn.matches("a&lt;b").count(), 1, "one legend for both");
    assert_eq!(first.matches('M').count(), 2, "{first}");
    let height_of = |path: &str| path.rsplit(' ').next().unwrap().parse::<f64>().unwrap();
    assert!(height_of(first) > height_of(second), "4 lies below 5 on the scale of both");
    assert!(drawn.contains("t &amp; t") && drawn.contains(">10:00 – 10:02<"), "{drawn}");
}

#[test]
fn what_has_another_unit_has_a_scale_and_colours_of_its_own() {
    let rows = [row("per second", vec![panel(0.0, &[1e6, 2e6])]), row("ms", vec![panel(0.0, &[1.0, 2.0])])];
    let drawn = plot("t", "", &rows);
    let [first, second] = paths(&drawn)[..] else { panic!("{drawn}") };
    let heights = |path: &str| -> Vec<f64> {
        path.split(['M', 'L']).filter_map(|point| point.split(' ').nth(1)?.parse().ok()).collect()
    };
    let apart = |path: &str| heights(path)[0] - heights(path)[1];
    assert!((apart(first) - apart(second)).abs() < 0.02, "each fills its own panel: {first} {second}");
    assert!(drawn.contains(COLORS[0]) && drawn.contains(COLORS[1]));
    assert!(drawn.contains("panel-1-0") && drawn.contains(">per second<") && drawn.contains(">ms<"));
}

#[test]
fn nothing_to_draw_is_an_empty_picture() {
    let empty = PlotPanel { from_s: 0.0, to_s: 1.0, lines: Vec::new() };
    for rows in [vec![], vec![row("", vec![empty])]] {
        let drawn = plot("", "", &rows);
        assert!(drawn.starts_with("<svg") && drawn.ends_with("</svg>\n"));
    }
}

#[test]
fn a_scale_begins_at_zero_unless_that_says_nothing_and_only_what_is_shown_makes_it() {
    let values = |value: &[f64]| row("", vec![panel(0.0, value)]);
    assert_eq!(extent(&values(&[50.0, 100.0])), (0.0, 105.0));
    assert_eq!(extent(&values(&[-10.0, 10.0])), (-11.0, 11.0));
    assert_eq!(extent(&PlotRow { from_zero: false, ..values(&[1000.0, 1100.0]) }), (995.0, 1105.0));
    assert_eq!(extent(&values(&[0.0, 0.0])), (0.0, 1.0));
    assert_eq!(extent(&PlotRow { from_zero: false, ..values(&[1.0, 101.0]) }), (0.0, 106.0));
    let mut cut = values(&[1.0, 2.0, 900.0]);
    cut.panels[0].to_s = 1.5;
    assert_eq!(extent(&cut), (0.0, 451.0 * 1.05), "the line passes the edge at 451");
    cut.panels[0].to_s = 1.0;
    assert_eq!(extent(&cut), (0.0, 2.1));
}

#[test]
fn numbers_at_an_axis_are_short_and_differ() {
    let of = |low, high| {
        let ticks = value_ticks(low, high, 4);
        tick_texts(&ticks)
    };
    assert_eq!(of(0.0, 105.0), ["0", "50", "100"]);
    assert_eq!(of(0.0, 0.00021), ["0", "0.0001", "0.0002"]);
    assert_eq!(of(-1.1, 1.1), ["−1", "0", "1"]);
    assert_eq!(of(10_000_000.0, 10_004_000.0).len(), 5);
    assert_eq!(of(10_000_000.0, 10_004_000.0)[1], "10.001M");
    assert_eq!(of(0.0, 2_100.0), ["0", "1k", "2k"]);
}

#[test]
fn a_long_name_loses_its_middle() {
    assert_eq!(fitting("abcdefghijkl", 9.0), "abcd…ijkl");
    assert_eq!(fitting("abc", 9.0), "abc");
}

#[test]
fn times_read_as_a_clock() {
    assert_eq!(clocks(&[0.0, 61.0, 3_661.0]), ["0:00", "1:01", "1:01:01"]);
    assert_eq!(clocks(&[0.0, 0.5]), ["0:00.0", "0:00.5"]);
    assert_eq!(time_ticks(600.0, 1_200.0, 5.0), [600.0, 720.0, 840.0, 960.0, 1_080.0, 1_200.0]);
}
