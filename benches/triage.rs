//! How fast triage reads logs: lines of no interest, and a log full of failures.

use divan::counter::BytesCount;

fn main() {
    divan::main();
}

/// Lines as training prints them.
fn noise(bytes: usize) -> String {
    let mut out = String::with_capacity(bytes + 200);
    let mut n = 0u64;
    while out.len() < bytes {
        n += 1;
        out.push_str(&format!(
            "I0320 03:59:34.777634     888 train.py:{}] step {n} loss {:.4} tokens/s {} memory ok\n",
            n % 900,
            1.0 + (n % 97) as f64 / 100.0,
            n * 7919 % 100_003
        ));
    }
    out
}

#[divan::bench]
fn other_lines(bencher: divan::Bencher<'_, '_>) {
    let text = noise(64 << 20);
    bencher
        .counter(BytesCount::of_str(&text))
        .bench_local(|| xpeak::oom::read(divan::black_box(text.as_bytes())));
}

#[divan::bench]
fn one_long_line(bencher: divan::Bencher<'_, '_>) {
    let text = noise(64 << 20).replace('\n', " ");
    bencher
        .counter(BytesCount::of_str(&text))
        .bench_local(|| xpeak::oom::read(divan::black_box(text.as_bytes())));
}

#[divan::bench]
fn failures(bencher: divan::Bencher<'_, '_>) {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/samples/oom_text/tpu_full_large.txt"
    );
    let text = std::fs::read_to_string(path)
        .unwrap_or_default()
        .repeat(2000);
    bencher
        .counter(BytesCount::of_str(&text))
        .bench_local(|| xpeak::oom::read(divan::black_box(text.as_bytes())));
}
