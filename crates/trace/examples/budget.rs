//! Prints the budget of a server's requests each second: `budget PID [SECONDS] [GENERATOR PID]`.
use std::time::Duration;
use whyso_model::state;
use whyso_trace::{TraceSpec, Tracer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let pid: u32 = args.next().ok_or("which process?")?.parse()?;
    let seconds: u64 = args.next().map_or(Ok(5), |s| s.parse())?;
    let generators = args.next().map(|s| s.parse()).transpose()?.into_iter().collect();
    let mut tracer =
        Tracer::start(&TraceSpec { servers: vec![pid], generators, cost: true, ..TraceSpec::default() })?;
    let mut before = tracer.read();
    for _ in 0..seconds {
        std::thread::sleep(Duration::from_secs(1));
        let now = tracer.read();
        let requests = (now.server.requests - before.server.requests).max(1);
        let us = |ns: u64| ns as f64 / requests as f64 / 1e3;
        print!(
            "{} requests, {:.1} us each: ",
            requests,
            us(now.server.request_ns - before.server.request_ns)
        );
        for (place, state) in state::ALL.iter().enumerate() {
            let ns = now.server.in_requests[place] - before.server.in_requests[place];
            if ns > 0 {
                print!("{} {:.2} ", state.name(), us(ns));
            }
        }
        let (s, b) = (&now.server, &before.server);
        println!(
            "| transit {:.1} (wakeup {:.1} runqueue {:.1}) others {} unseen {} samples {} {}",
            us(s.transit_ns - b.transit_ns),
            us(s.transit_wakeup_ns - b.transit_wakeup_ns),
            us(s.transit_runqueue_ns - b.transit_runqueue_ns),
            s.others - b.others,
            s.unseen - b.unseen,
            s.user_samples - b.user_samples,
            s.system_samples - b.system_samples
        );
        let (c, d) = (&now.client, &before.client);
        println!(
            "  client: {} answers, delay {:.1} (wakeup {:.1} runqueue {:.1}) held {:.1} wire {:.1}; sum {:.1}",
            c.answers - d.answers,
            us(c.delay_ns - d.delay_ns),
            us(c.delay_wakeup_ns - d.delay_wakeup_ns),
            us(c.delay_runqueue_ns - d.delay_runqueue_ns),
            us(c.held_ns - d.held_ns),
            us(c.wire_ns - d.wire_ns),
            us(c.held_ns - d.held_ns + c.wire_ns - d.wire_ns + c.delay_ns - d.delay_ns),
        );
        println!("  threads {} lost {:?}", now.threads.len(), now.lost);
        before = now;
    }
    for cost in tracer.cost() {
        println!(
            "{:20} {:10} runs {:6.0} ns each",
            cost.program,
            cost.runs,
            cost.ns as f64 / cost.runs.max(1) as f64
        );
    }
    for file in tracer.files() {
        println!("{:?}", file);
    }
    Ok(())
}
