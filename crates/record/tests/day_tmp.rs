#[path = "data/before_levels.rs"]
mod before;
#[path = "../examples/recording_maker/mod.rs"]
mod recording_maker;
#[test]
fn make() {
    let v = |n: &str| std::env::var(n).unwrap();
    recording_maker::record(std::path::Path::new(&v("DIR")), v("HOURS").parse().unwrap(), 3000).unwrap();
}
#[test]
fn measure() {
    before::run(&std::env::var("ARGS").unwrap().split(" ").map(str::to_string).collect::<Vec<_>>());
}
