//! Writes the views of `whyso sql` and their catalogue, for benches: `write_views FOLDER PLACE [RUN]`. With a run it chooses only that one.

use std::path::Path;

use whyso_record::sql::{Selection, views};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [folder, place, run @ ..] = &arguments[..] else {
        return Err("give a folder of runs, and a folder for the views".into());
    };
    let runs = (!run.is_empty()).then(|| run.iter().cloned().collect());
    let catalogue = Path::new(place).join("catalogue.parquet");
    let views = views(Path::new(folder), &Selection { runs, ..Selection::default() }, &catalogue)?;
    std::fs::write(&catalogue, &views.catalogue)?;
    std::fs::write(Path::new(place).join("views.sql"), &views.sql)?;
    println!("{} runs, {} files", views.runs, views.files);
    Ok(())
}
