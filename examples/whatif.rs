//! Simulates edits with the library: `whatif FILE.hlo.pb EDIT... [--json]`.
#![allow(clippy::print_stdout)]

use xpeak::decode::{decode_program, HloContainer};
use xpeak::simulate::{whatif, Edit, WhatIfOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let json = words
        .iter()
        .position(|w| w == "--json")
        .map(|i| words.remove(i));
    let (path, edits) = words.split_first().ok_or("a file and edits, please")?;
    let bytes = std::fs::read(path)?;
    let program = decode_program(&bytes, HloContainer::Proto).map_err(|e| e.field())?;
    let options = WhatIfOptions {
        edits: Edit::parse_words(edits)?,
        ..WhatIfOptions::default()
    };
    let (result, _) = whatif(&program, &options)?;
    if json.is_some() {
        println!("{}", serde_json::to_string_pretty(&result)?);
    } else {
        println!("{result:#?}");
    }
    Ok(())
}
