//! Simulates edits with the library: `whatif FILE.hlo.pb EDIT... [--json]`, or plans:
//! `whatif FILE.hlo.pb --fit 15.75G [--json]`.
#![allow(clippy::print_stdout)]

use xpeak::hlo::{decode_program, HloContainer};
use xpeak::render::{documents, render_markdown};
use xpeak::whatif::{plan, whatif, Edit, PlanOptions, WhatIfOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let json = words
        .iter()
        .position(|w| w == "--json")
        .map(|i| words.remove(i));
    let (path, edits) = words.split_first().ok_or("a file and edits, please")?;
    let bytes = std::fs::read(path)?;
    let program = decode_program(&bytes, HloContainer::Proto).map_err(|e| e.field())?;
    if let [fit, size] = edits {
        if fit == "--fit" {
            let options = PlanOptions::new(xpeak::units::parse_size(size).ok_or("not a size")?);
            let plan = plan(&program, &options)?;
            match json {
                Some(_) => println!("{}", serde_json::to_string_pretty(&plan)?),
                None => print!("{}", render_markdown(&documents::plan(&plan))),
            }
            return Ok(());
        }
    }
    let options = WhatIfOptions::new(Edit::parse_words(edits)?);
    let (result, _) = whatif(&program, &options)?;
    match json {
        Some(_) => println!("{}", serde_json::to_string_pretty(&result)?),
        None => print!("{}", render_markdown(&documents::whatif(&result))),
    }
    Ok(())
}
