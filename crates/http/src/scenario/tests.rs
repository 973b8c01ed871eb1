use super::*;

const SHOP: &str = r#"
begin = "home"
think = "exp:2s"
headers = { Accept-Language = "de" }

[values]
word = ["red", "green"]
item = { from = 1, to = 9 }

[[page]]
name = "home"
path = "/?u={user}"
goal_ms = 200
next = { search = 0.7, buy = 0.3 }

[[page]]
name = "search"
path = "/search?q={word}"
think = "500ms"
take = [{ name = "token", after = 'value="', before = '"' }]
next = { home = 1 }

[[page]]
name = "buy"
path = "/buy"
form = { item = "{item}", token = "{token}" }
expect = 302
next = { home = 1.0 }
"#;

fn refused(text: &str) -> String {
    Scenario::parse("shop.toml", text).unwrap_err().to_string()
}

#[test]
fn a_file_is_read_with_its_pages_values_and_order() {
    let scenario = Scenario::parse("shop.toml", SHOP).unwrap();
    assert_eq!(scenario.value_names, ["user", "item", "word", "token"]);
    assert_eq!(scenario.begin, Some(0));
    assert_eq!(scenario.pages[0].next, [(2, 0.3), (1, 0.7)]);
    assert_eq!(scenario.pages[1].think, Some(Think::Fixed(Duration::from_millis(500))));
    assert_eq!((scenario.pages[2].method, scenario.pages[2].expect), (Method::Post, Expect::Status(302)));
    assert!(!scenario.is_mix() && Scenario::of_path("a", "/{x}").is_mix());
    let mut out = Vec::new();
    scenario.pages[1].path.write_path(&[vec![], vec![], b"a b".to_vec()], &mut out);
    assert_eq!(out, b"/search?q=a%20b");
}

#[test]
fn a_walk_follows_the_probabilities_and_is_reproduced_by_its_seed() {
    let scenario = Scenario::parse("shop.toml", SHOP).unwrap();
    let pages = |seed: u64| -> Vec<usize> {
        let mut walk = Walk::new(seed, 3);
        (0..2000).map(|number| walk.next_page(&scenario, number)).collect()
    };
    let walked = pages(1);
    assert_eq!((walked[0], walked.clone()), (0, pages(1)));
    assert_ne!(walked, pages(2));
    assert!(walked.windows(2).all(|pair| pair[0] == 0 || pair[1] == 0));
    let buys = walked.iter().filter(|page| **page == 2).count();
    assert!((240..360).contains(&buys), "{buys} of 1000");
}

#[test]
fn a_mix_keeps_its_weights() {
    let text = "[[page]]\nname = 'a'\npath = '/a'\nweight = 3\n[[page]]\nname = 'b'\npath = '/b'\n\
                [[page]]\nname = 'c'\npath = '/c'\nweight = 0\n";
    let scenario = Scenario::parse("mix.toml", text).unwrap();
    let mut walk = Walk::new(7, 0);
    let mut counts = [0; 3];
    (0..4000).for_each(|number| counts[walk.next_page(&scenario, number)] += 1);
    assert!((2850..3150).contains(&counts[0]) && counts[2] == 0, "{counts:?}");
}

#[test]
fn values_are_drawn_and_taken_ones_stay() {
    let scenario = Scenario::parse("shop.toml", SHOP).unwrap();
    let walk = Walk::new(1, 12);
    let mut values = vec![Vec::new(), Vec::new(), Vec::new(), b"t-1".to_vec()];
    for number in 0..50 {
        walk.draw_values(&scenario, number, &mut values);
        let item: u64 = std::str::from_utf8(&values[1]).unwrap().parse().unwrap();
        assert!((1..=9).contains(&item));
        assert!(values[2] == b"red" || values[2] == b"green");
    }
    assert_eq!((values[0].as_slice(), values[3].as_slice()), (&b"12"[..], &b"t-1"[..]));
}

#[test]
fn think_times_have_their_mean_and_a_bound() {
    let scenario = Scenario::parse("shop.toml", SHOP).unwrap();
    let mut walk = Walk::new(1, 0);
    assert_eq!(walk.think(&scenario, 0), None);
    walk.next_page(&scenario, 0);
    let times: Vec<f64> =
        (0..4000).map(|number| walk.think(&scenario, number).unwrap().as_secs_f64()).collect();
    let mean_s = times.iter().sum::<f64>() / 4000.0;
    assert!((1.9..2.1).contains(&mean_s) && times.iter().all(|time| *time <= 32.0), "{mean_s}");
}

#[test]
fn what_is_wrong_with_a_file_is_reported_with_what_to_do() {
    let page = "[[page]]\nname = 'a'\npath = '/a'\n";
    for (text, part) in [
        ("", "at least one [[page]]"),
        ("[[page]]\nname = 'a'", "missing field `path`"),
        ("[[page]]\nname = 'a b'\npath = '/'", "is no name"),
        ("[[page]]\nname = 'a'\npath = 'x'", "must begin with /"),
        ("[[page]]\nname = 'a'\npath = '/{nothing}'", "which nothing gives"),
        (&format!("{page}{page}"), "two pages have the name 'a'"),
        (&format!("{page}weight = -1"), "weight -1"),
        (&format!("{page}weight = 0"), "no page is ever drawn"),
        (&format!("{page}next = {{ a = 0.5 }}"), "add up to 0.5"),
        (&format!("{page}next = {{ b = 1 }}"), "names the page 'b'"),
        (&format!("{page}think = '2h'"), "no length of time"),
        (&format!("{page}think = 2"), "think"),
        (&format!("{page}goal_ms = 0"), "goal_ms 0"),
        (&format!("{page}expect = 99"), "no status"),
        (&format!("{page}method = 'get'"), "no method"),
        (&format!("{page}form = {{ a = '1' }}\nmethod = 'GET'"), "send no body"),
        (&format!("{page}form = {{ a = '1' }}\nbody = 'x'"), "two bodies"),
        (&format!("{page}headers = {{ Host = 'x' }}"), "writes itself"),
        (&format!("{page}headers = {{ A = \"x\\r\\nB: 1\" }}"), "no header may have"),
        (&format!("{page}take = [{{ name = 'user', after = 'a', before = '' }}]"), "defined twice"),
        (&format!("{page}take = [{{ name = 't', after = '', before = '' }}]"), "take needs a text"),
        (&format!("redirects = 99\n{page}"), "redirects 99"),
        (&format!("begin = 'z'\n{page}"), "'z'"),
        (&format!("[values]\nv = []\n{page}"), "one or more texts"),
        (&format!("[values]\nv = {{ from = 2, to = 1 }}\n{page}"), "'from' is not above"),
        (&format!("{page}speed = 1"), "unknown field `speed`"),
    ] {
        let message = refused(text);
        assert!(message.contains(part), "{text}: {message}");
    }
}

#[test]
fn a_site_under_a_path_has_it_before_every_page() {
    let mut scenario = Scenario::of_path("a", "/x");
    scenario.put_under("/shop/");
    let mut out = Vec::new();
    scenario.pages[0].path.write_path(&[], &mut out);
    assert_eq!(out, b"/shop/x");
}
