//! Every picture on ordinary, odd and real data: geometry, text that does not collide, sizes,
//! determinism.

use std::path::PathBuf;

use super::canvas::Canvas;
use super::font::Fonts;
use super::recorder::Recorder;
use crate::chart::*;
use crate::hlo::AllocationKind;
use crate::hlo::AllocationKind::*;

const GIB: u64 = 1 << 30;

fn group(label: &str, count: u64, size: u64, padding: u64, kind: AllocationKind) -> ChartGroup {
    ChartGroup {
        label: label.to_owned(),
        shape: "bf16[8,2048,4096]{2,1,0:T(8,128)(2,1)}".to_owned(),
        count,
        size_bytes: size,
        padding_bytes: padding,
        kind,
    }
}

fn leaf(name: &str, size_bytes: u64, kind: AllocationKind) -> Scope {
    Scope {
        name: name.to_owned(),
        size_bytes,
        count: 1,
        kind: Some(kind),
        children: Vec::new(),
    }
}

fn timeline_of(points: u32, base: u64, height: u64) -> Timeline {
    let bytes: Vec<u64> = (0..points)
        .map(|i| base + height / u64::from(points) * u64::from(i.min(points - i)))
        .collect();
    let unpadded: Vec<u64> = bytes.iter().map(|b| b * 3 / 4).collect();
    Timeline::thin(&bytes, Some(&unpadded), points / 2)
}

/// A program like many: two kinds, some padding, everything filled in.
// Long: data, not steps.
fn ordinary() -> ChartData {
    let timeline = timeline_of(5000, 2 * GIB, 8 * GIB);
    let peak = timeline.peak_bytes;
    let block = |start, end, offset_bytes, size_bytes| MapBlock {
        start,
        end,
        offset_bytes,
        size_bytes,
        label: "jvp()/dot_general".to_owned(),
        shape: "bf16[8,2048,4096]".to_owned(),
    };
    let row = |label: &str, redundant_bytes, copies| ShardingRow {
        label: label.to_owned(),
        size_bytes: GIB,
        redundant_bytes,
        copies,
        devices: 4,
    };
    let temporary = leaf("while", 4 * GIB, Temporary);
    ChartData {
        title: ChartTitle {
            module: "jit_train_step".to_owned(),
            device: "TPU v6 lite".to_owned(),
            space: "HBM".to_owned(),
            peak_instruction: "fusion.12".to_owned(),
        },
        capacity_bytes: Some(7 * GIB),
        peak_bytes: peak,
        peak_unpadded_bytes: peak - GIB,
        allocated_bytes: peak + GIB / 4,
        breakdown: vec![(Parameter, 2 * GIB), (Temporary, peak - 2 * GIB)],
        timeline: Some(timeline.clone()),
        groups: vec![
            group(
                "jit(step)/jvp(Model)/layer_*/mlp/dot",
                48,
                3 * GIB,
                GIB,
                Temporary,
            ),
            group("state[0]['mlp']", 1, 2 * GIB, 0, Parameter),
            group("", 1, GIB, 0, Temporary),
        ],
        map: Some(MemoryMap {
            arena_bytes: 4 * GIB,
            live_bytes: 3 * GIB,
            point_count: 5000,
            peak_point: 2500,
            range_count: 3,
            blocks: vec![block(0, 4000, 0, 2 * GIB), block(2000, 3000, 2 * GIB, GIB)],
            rest: Coverage {
                columns: 4,
                rows: 2,
                cells: vec![0, 255, 100, 100, 0, 0, 64, 255],
            },
        }),
        scopes: Scope {
            name: String::new(),
            size_bytes: 6 * GIB,
            count: 2,
            kind: Some(Temporary),
            children: vec![temporary, leaf("arguments", 2 * GIB, Parameter)],
        },
        sharding: vec![row("logits", 3 * GIB / 4, 4), row("embed", 0, 1)],
        what_if: Some(WhatIfData {
            before_label: "as compiled".to_owned(),
            after_label: "--donate state".to_owned(),
            before: timeline,
            after: timeline_of(900, GIB, 3 * GIB),
        }),
    }
}

fn recorded(kind: ChartKind, data: &ChartData) -> Recorder {
    let fonts = Fonts::load().unwrap();
    let (width, height) = size(kind, data, &fonts);
    let mut recorder = Recorder::new(width, height);
    let mut canvas = Canvas::new(&mut recorder, &fonts);
    draw(kind, &mut canvas, data);
    canvas.finish().unwrap();
    recorder
}

#[track_caller]
fn assert_tidy(data: &ChartData, what: &str) {
    for kind in ChartKind::ALL {
        let r = recorded(kind, data);
        assert!(!r.texts.is_empty(), "{what} {kind:?}");
        assert_eq!(r.outside(), Vec::<&str>::new(), "{what} {kind:?}");
        assert_eq!(r.overlaps(), Vec::new(), "{what} {kind:?}");
    }
}

/// Data that programs should not have, and might.
// Long: data, not steps.
fn odd() -> Vec<(&'static str, ChartData)> {
    let with = |change: &dyn Fn(&mut ChartData)| {
        let mut d = ordinary();
        change(&mut d);
        d
    };
    let one_point = Timeline::thin(&[GIB], None, 0);
    let flat = Timeline::thin(&[0, 0], Some(&[0, 0]), 1);
    vec![
        ("nothing", ChartData::default()),
        (
            "one point",
            with(&|d| {
                d.timeline = Some(one_point.clone());
                if let Some(m) = &mut d.map {
                    (m.point_count, m.peak_point) = (1, 0);
                }
            }),
        ),
        (
            "flat zero",
            with(&|d| {
                d.timeline = Some(flat.clone());
                d.peak_bytes = 0;
                d.what_if = Some(WhatIfData {
                    before: flat.clone(),
                    after: flat.clone(),
                    ..WhatIfData::default()
                });
            }),
        ),
        (
            "empty timelines",
            with(&|d| {
                d.timeline = Some(Timeline::default());
                d.map = Some(MemoryMap::default());
                d.what_if = Some(WhatIfData::default());
            }),
        ),
        (
            "no padding",
            with(&|d| {
                d.groups.iter_mut().for_each(|g| g.padding_bytes = 0);
                d.peak_unpadded_bytes = d.peak_bytes;
            }),
        ),
        (
            "padding over size",
            with(&|d| d.groups[0].padding_bytes = u64::MAX),
        ),
        (
            "a peak outside",
            with(&|d| {
                if let Some(t) = &mut d.timeline {
                    t.peak_point = u32::MAX;
                }
            }),
        ),
        (
            "huge",
            with(&|d| {
                d.capacity_bytes = Some(u64::MAX);
                d.peak_bytes = u64::MAX;
                d.allocated_bytes = u64::MAX;
                d.breakdown = vec![(Parameter, u64::MAX), (Temporary, u64::MAX)];
                let t = Timeline::thin(&[u64::MAX, 1], Some(&[1, 1]), 0);
                d.timeline = Some(t);
                d.groups = vec![group("x", u64::MAX, u64::MAX, u64::MAX, Output); 3];
                d.sharding[0].size_bytes = u64::MAX;
                d.sharding[0].copies = u64::MAX;
                d.scopes.children[0].size_bytes = u64::MAX;
                if let Some(m) = &mut d.map {
                    m.blocks[0].offset_bytes = u64::MAX;
                }
            }),
        ),
        ("no capacity", with(&|d| d.capacity_bytes = None)),
        ("zero capacity", with(&|d| d.capacity_bytes = Some(0))),
        (
            "many groups",
            with(&|d| {
                d.groups = (0..100_000)
                    .map(|i| group("g", 1, 100_000 - i, 1, Temporary))
                    .collect();
                d.scopes.children = (0..20_000)
                    .map(|i| leaf("s", 20_000 - i, Temporary))
                    .collect();
                d.scopes.size_bytes = d.scopes.children.iter().map(|c| c.size_bytes).sum();
            }),
        ),
        (
            "long names",
            with(&|d| {
                let long = "jit(step)/transpose(jvp(Transformer))/".repeat(40);
                d.title.module = long.clone();
                d.title.device = long.clone();
                d.title.peak_instruction = long.clone();
                d.groups[0].label = long.clone();
                d.groups[0].shape = "(".to_owned() + &"f32[1,2,3],".repeat(90);
                d.sharding[0].label = long.clone();
                d.scopes.children[0].name = long.clone();
                if let Some(w) = &mut d.what_if {
                    w.after_label = long.clone();
                }
                if let Some(m) = &mut d.map {
                    m.blocks[0].label = long.clone();
                }
            }),
        ),
        (
            "odd characters",
            with(&|d| {
                d.title.module = "a\nb\t\u{1}<&>\"'é漢".to_owned();
                d.groups[0].label = "\u{0}\u{7f}".to_owned();
            }),
        ),
    ]
}

#[test]
fn ordinary_pictures_are_tidy() {
    assert_tidy(&ordinary(), "ordinary");
}

#[test]
fn odd_data_gives_tidy_pictures() {
    for (what, data) in odd() {
        assert_tidy(&data, what);
    }
}

#[test]
fn every_picture_encodes_and_says_its_size() {
    let data = ordinary();
    let fonts = Fonts::load().unwrap();
    let wanted = ChartKind::ALL.map(|kind| (kind, ChartFormat::Png));
    let all = render_all(&wanted, &data).unwrap();
    assert_eq!(all.len(), wanted.len());
    for ((kind, _), png) in wanted.into_iter().zip(all) {
        let pixels = Pixmap::decode_png(&png).unwrap();
        let wanted = size(kind, &data, &fonts);
        assert_eq!((pixels.width(), pixels.height()), wanted, "{kind:?}");
        assert_eq!(wanted.0, 1600);
        let svg = String::from_utf8(render(kind, &data, ChartFormat::Svg).unwrap()).unwrap();
        let head = format!(r#"<svg width="1600" height="{}""#, wanted.1);
        assert!(svg.starts_with(&head), "{kind:?} {svg:.90}");
        assert!(svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("jit_train_step") && svg.contains("font-family=\"DejaVu Sans"));
    }
}

#[test]
fn the_same_data_gives_the_same_bytes() {
    let data = ordinary();
    let svg = ChartKind::ALL.map(|kind| (kind, ChartFormat::Svg));
    let png = [ChartKind::Timeline, ChartKind::Map].map(|kind| (kind, ChartFormat::Png));
    let wanted = [svg.as_slice(), png.as_slice()].concat();
    let all = render_all(&wanted, &data).unwrap();
    for ((kind, format), bytes) in wanted.into_iter().zip(all) {
        assert!(bytes == render(kind, &data, format).unwrap(), "{kind:?}");
    }
}

#[test]
fn svg_text_holds_no_control_characters() {
    for (_, data) in odd() {
        let svg = render(ChartKind::Report, &data, ChartFormat::Svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        assert!(!svg.contains(|c: char| c.is_control() && c != '\n'));
    }
}

#[test]
fn bars_are_in_proportion_and_show_padding() {
    let r = recorded(ChartKind::Buffers, &ordinary());
    let bars = |kind| {
        let c = color_of_kind(kind);
        let bar = r
            .rects
            .iter()
            .filter(move |(a, rgb)| a.h == 24.0 && *rgb == (c.r, c.g, c.b));
        bar.map(|(a, _)| a.w).collect::<Vec<_>>()
    };
    let (temporary, parameter) = (bars(Temporary), bars(Parameter));
    let [large, small] = temporary[..] else {
        panic!("{temporary:?}");
    };
    assert!((large / small - 3.0).abs() < 0.01, "{temporary:?}");
    assert!((parameter[0] / small - 2.0).abs() < 0.01, "{parameter:?}");
    // A third of the first is padding: a paler rectangle with stripes.
    let pale = color_of_kind(Temporary).tint(0.72);
    let mut pale_ones = r
        .rects
        .iter()
        .filter(|(_, rgb)| *rgb == (pale.r, pale.g, pale.b));
    let hatched = pale_ones.find(|(a, _)| a.h == 24.0);
    let hatched = hatched.map_or(0.0, |h| h.0.w);
    assert!((large / hatched - 3.0).abs() < 0.01, "{hatched}");
    assert!(
        r.texts
            .iter()
            .any(|t| t.0 == "48 × 64.0 MiB  bf16[8,2048,4096]"),
        "{:?}",
        r.texts
    );
}

#[test]
fn the_peak_and_the_capacity_are_named() {
    let data = ordinary();
    let r = recorded(ChartKind::Timeline, &data);
    let has = |text: &str| r.texts.iter().any(|t| t.0.contains(text));
    assert!(
        has("peak 6.00 GiB") && has("capacity 7.00 GiB"),
        "{:?}",
        r.texts
    );
    assert!(has("point 2,500, fusion.12") && has("without tile padding"));
}

#[test]
fn without_content_a_sentence_stands_in_its_place() {
    let data = ChartData::default();
    for kind in ChartKind::ALL {
        let full = kind.has_content(&ordinary());
        assert!(full, "{kind:?}");
        let r = recorded(kind, &data);
        assert!(
            r.texts.iter().any(|t| t.0.split(' ').count() > 3),
            "{kind:?} {:?}",
            r.texts
        );
    }
}

/// Every program of the corpus, where it is there.
#[test]
fn real_programs_give_tidy_pictures() {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus/programs");
    let Ok(folders) = std::fs::read_dir(corpus) else {
        return;
    };
    for folder in folders.flatten() {
        let options = crate::report::Options::default();
        let Ok(sources) = crate::source::Sources::open(&[folder.path()]) else {
            continue;
        };
        let Ok(loaded) = crate::report::load(&sources, &options) else {
            continue;
        };
        for m in &loaded.modules {
            let Some(analysis) = &m.analysis else {
                continue;
            };
            let context = analysis.context(&m.program, Some(16 * GIB));
            let data = chart_data(&context, &analysis.groups, "TPU v5 lite");
            let sum = data.breakdown.iter().map(|b| b.1).sum::<u64>();
            assert_eq!(sum, data.peak_bytes);
            assert_eq!(data.scopes.size_bytes, data.peak_bytes);
            if let Some(t) = &data.timeline {
                assert_eq!(t.peak_bytes, data.peak_bytes);
                let most = t.columns.iter().map(|c| c.max_bytes).max();
                assert_eq!(most, Some(data.peak_bytes));
            }
            assert_tidy(&data, &folder.path().display().to_string());
        }
    }
}
