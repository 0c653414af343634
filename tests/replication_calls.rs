//! Who holds the same data across calls, loops, branches and asynchronous pairs; and programs that
//! are made to be expensive or make no sense.
#![allow(clippy::unwrap_used)]

mod hlo_builder;
#[path = "common/work.rs"]
mod work;

use hlo_builder::*;
use work::{assert_linear, work};

#[test]
fn calls_are_followed_and_stand_for_all_callers() {
    let mut b = two_by_two();
    b.begin();
    let p = b.parameter(0, array(&[8]));
    let inner = b.op("negate", &[p]);
    let c = b.end(inner);
    let once = b.call("fusion", &[c], &[2], array(&[8]));
    let d = b.finish(once);
    assert_eq!(d.labels(once), ROWS);
    assert_eq!(d.labels(inner), ROWS);

    let mut b = two_by_two();
    b.begin();
    let p = b.parameter(0, array(&[8]));
    let inner = b.op("negate", &[p]);
    let c = b.end(inner);
    let first = b.call("call", &[c], &[1], array(&[8]));
    let second = b.call("call", &[c], &[2], array(&[8]));
    let d = b.finish(second);
    assert_eq!(
        (d.labels(first), d.labels(inner)),
        (ROWS.into(), ROWS.into())
    );
}

#[test]
fn tuples_keep_their_elements_apart() {
    let mut b = two_by_two();
    let inner = b.tuple(&[1, 2]);
    let t = b.tuple(&[3, inner]);
    let barrier_shape = b.shapes[t as usize].clone();
    let held = b.op_of("opt-barrier", &[t], barrier_shape);
    let pair = b.element(held, 1);
    let (one, rows) = (b.element(pair, 0), b.element(pair, 1));
    let columns = b.element(held, 0);
    let nowhere = b.element(held, 5);
    let d = b.finish(one);
    assert_eq!(d.labels(one), ONE);
    assert_eq!(d.labels(rows), ROWS);
    assert_eq!(d.labels(columns), COLUMNS);
    assert_eq!(d.labels(nowhere), OWN);
    assert_eq!(d.labels_at(t, &[1, 1]), ROWS);
    assert_eq!(d.labels_at(t, &[1]), OWN, "elements that differ");
}

#[test]
fn loops_reach_a_fixed_point() {
    let mut b = two_by_two();
    // (a, b, c) → (b, c, c): two turns until the last one's data is everywhere.
    let (w, p) = looped(
        &mut b,
        &[1, 1, 2],
        |b, p| {
            let (x, y) = (b.element(p, 1), b.element(p, 2));
            vec![x, y, y]
        },
        |b, _| b.op("constant", &[]),
    );
    let d = b.finish(w);
    for k in 0..3 {
        assert_eq!(d.labels_at(w, &[k]), ROWS);
        assert_eq!(d.labels_at(p, &[k]), ROWS);
    }
}

#[test]
fn a_loop_that_devices_leave_at_different_turns_tells_them_apart() {
    let mut b = two_by_two();
    let mut inside = 0;
    let (w, p) = looped(
        &mut b,
        &[1, 2],
        |b, p| {
            let (x, y) = (b.element(p, 0), b.element(p, 1));
            inside = b.op("constant", &[]);
            vec![x, y]
        },
        |b, q| b.element(q, 1),
    );
    let d = b.finish(w);
    assert_eq!(d.labels_at(w, &[0]), ROWS);
    assert_eq!(d.labels_at(p, &[0]), ROWS);
    assert_eq!(d.labels(inside), ROWS);
}

#[test]
fn conditionals_depend_on_who_takes_which_branch() {
    let mut b = two_by_two();
    let branch = |b: &mut Builder| {
        b.begin();
        let p = b.parameter(0, array(&[8]));
        b.end(p)
    };
    let (x, y) = (branch(&mut b), branch(&mut b));
    let same = b.call("conditional", &[x, y], &[1, 1, 1], array(&[8]));
    let (x, y) = (branch(&mut b), branch(&mut b));
    let by_row = b.call("conditional", &[x, y], &[2, 1, 1], array(&[8]));
    let (x, y) = (branch(&mut b), branch(&mut b));
    let by_branch = b.call("conditional", &[x, y], &[1, 1, 3], array(&[8]));
    let odd = b.call("conditional", &[x], &[1, 1, 3], array(&[8]));
    let d = b.finish(same);
    assert_eq!(d.labels(same), ONE);
    assert_eq!(d.labels(by_row), ROWS);
    assert_eq!(d.labels(by_branch), COLUMNS);
    assert_eq!(d.labels(odd), OWN);
}

#[test]
fn asynchronous_pairs_are_followed() {
    let mut b = two_by_two();
    b.begin();
    let p = b.parameter(0, array(&[8]));
    let n = b.op("negate", &[p]);
    let c = b.end(n);
    let context = integer();
    let shape = tuple_of(vec![
        tuple_of(vec![array(&[8])]),
        array(&[8]),
        context.clone(),
    ]);
    let start = b.call("async-start", &[c], &[2], shape);
    let done = b.op("async-done", &[start]);

    // Started with nothing; operands come with an update.
    b.begin();
    let p = b.parameter(0, array(&[8]));
    let n = b.op("negate", &[p]);
    let c = b.end(n);
    let empty = tuple_of(vec![tuple_of(vec![]), tuple_of(vec![]), context.clone()]);
    let start2 = b.call("async-start", &[c], &[], empty);
    let shape = tuple_of(vec![
        tuple_of(vec![array(&[8])]),
        array(&[8]),
        context.clone(),
    ]);
    let update = b.op_of("async-update", &[start2, 3], shape);
    let done2 = b.op("async-done", &[update]);

    // Started and never given anything.
    b.begin();
    let p = b.parameter(0, array(&[8]));
    let c = b.end(p);
    let start3 = b.call("async-start", &[c], &[], tuple_of(vec![]));
    let done3 = b.op("async-done", &[start3]);

    let pair = tuple_of(vec![array(&[8]), array(&[8])]);
    let gather = b.with("all-gather-start", &[4], pair, |i| {
        i.channel_id = 1;
        i.use_global_device_ids = true;
    });
    let gathered = b.op("all-gather-done", &[gather]);
    let copy = b.op_of(
        "copy-start",
        &[2],
        tuple_of(vec![array(&[8]), array(&[8]), context]),
    );
    let copied = b.op("copy-done", &[copy]);
    let d = b.finish(done);
    assert_eq!(d.labels(done), ROWS);
    assert_eq!(d.labels_at(start, &[1]), ROWS);
    assert_eq!(d.labels_at(start, &[0, 0]), ROWS);
    assert_eq!(d.labels(done2), COLUMNS);
    assert_eq!(d.labels(done3), OWN);
    assert_eq!(d.labels_at(gather, &[0]), OWN);
    assert_eq!(d.labels_at(gather, &[1]), ONE);
    assert_eq!(d.labels(gathered), ONE);
    assert_eq!(d.labels(copied), ROWS);
}

#[test]
fn custom_calls_are_pure_only_where_nothing_speaks_against_it() {
    let mut b = two_by_two();
    let custom = |b: &mut Builder, target: &str, operands: &[i64]| {
        let target = target.as_bytes().to_vec();
        b.with("custom-call", operands, array(&[8]), |i| {
            i.custom_call_target = target;
        })
    };
    let pure = custom(&mut b, "TopK", &[2]);
    let manual = custom(&mut b, "SPMDFullToShardShape", &[1]);
    let full = custom(&mut b, "SPMDShardToFullShape", &[1]);
    let callback = custom(&mut b, "xla_ffi_python_cpu_callback", &[1]);
    let source = custom(&mut b, "Whatever", &[]);
    let effect = b.with("custom-call", &[1], array(&[8]), |i| {
        i.custom_call_target = b"Thing".to_vec();
        i.custom_call_has_side_effect = true;
    });
    let kernel = b.with("custom-call", &[1], array(&[8]), |i| {
        i.custom_call_target = b"tpu_custom_call".to_vec();
        i.backend_config = br#"{"custom_call_config": {"collective_id": 0}}"#.to_vec();
    });
    let told = b.with("custom-call", &[4], array(&[8]), |i| {
        i.custom_call_target = b"SPMDShardToFullShape".to_vec();
        i.sharding = Some(rows(2, 2));
    });
    let d = b.finish(pure);
    // `full` carries no sharding, which reads as nothing said.
    for (v, want) in [
        (pure, ROWS),
        (manual, OWN),
        (full, OWN),
        (callback, OWN),
        (source, OWN),
        (effect, OWN),
        (kernel, OWN),
        (told, ROWS),
    ] {
        assert_eq!(d.labels(v), want);
    }
}

#[test]
fn computations_that_call_each_other_end() {
    let mut b = two_by_two();
    b.begin();
    let p = b.parameter(0, array(&[8]));
    let again = b.call("call", &[100_000], &[p], array(&[8]));
    let c = b.end(again);
    assert_eq!(c, 100_000);
    let v = b.call("call", &[c], &[2], array(&[8]));
    let d = b.finish(v);
    for v in [v, p, again] {
        assert_eq!(d.labels(v), OWN, "what does not return makes nothing");
    }
}

#[test]
fn deep_nesting_and_shared_callees_cost_what_they_are_long() {
    // Each level calls the one below twice: 2^n paths, n computations.
    assert_linear(2000, |levels| {
        let mut b = two_by_two();
        b.begin();
        let p = b.parameter(0, array(&[8]));
        let mut c = b.end(p);
        for _ in 0..levels {
            b.begin();
            let p = b.parameter(0, array(&[8]));
            let x = b.call("call", &[c], &[p], array(&[8]));
            let y = b.call("call", &[c], &[x], array(&[8]));
            c = b.end(y);
        }
        let id = b.op_of("partition-id", &[], integer());
        let v = b.call("fusion", &[c], &[2], array(&[8]));
        let d = b.finish(v);
        assert_eq!(d.labels(id), OWN);
        work(|| assert_eq!(d.labels(v), ROWS))
    });
}

#[test]
fn a_tuple_passed_many_times_is_connected_once() {
    assert_linear(1500, |times| {
        let mut b = two_by_two();
        let t = b.tuple(&vec![2; times]);
        let shape = b.shapes[t as usize].clone();
        b.begin();
        let p = b.parameter(0, shape);
        let e = b.element(p, times as i64 - 1);
        let c = b.end(e);
        let mut last = 0;
        for _ in 0..times {
            last = b.call("call", &[c], &[t], array(&[8]));
        }
        let d = b.finish(last);
        work(|| assert_eq!(d.labels(last), ROWS))
    });
}

#[test]
fn absurd_device_counts_say_nothing() {
    for (r, p) in [(i32::MAX, i32::MAX), (1, i32::MAX), (-1, -1), (0, 0)] {
        let b = Builder::new(r, p, vec![replicated()]);
        b.finish(1).analyse(|program, r| {
            assert_eq!(r.devices(), 1);
            let i = program.module.find_wire_id(1).unwrap();
            assert_eq!(r.classes().count(r.classes_of(&program.module, i, &[])), 1);
        });
    }
}

#[test]
fn thousands_of_devices_are_followed() {
    assert_linear(1000, |steps| {
        let n = 4096;
        let mut b = Builder::new(1, n, vec![rows(64, 64), columns(64, 64), replicated()]);
        let groups: Vec<Vec<i64>> = (0..64)
            .map(|g| (0..64).map(|k| g * 64 + k).collect())
            .collect();
        let groups: Vec<&[i64]> = groups.iter().map(Vec::as_slice).collect();
        let own = b.op("add", &[1, 2]);
        let gathered = b.collective("all-gather", own, &groups);
        let mut v = gathered;
        for k in 0..steps {
            v = b.op("add", &[v, if k % 2 == 0 { 1 } else { 3 }]);
        }
        let d = b.finish(v);
        let cost = work(|| drop(d.labels(v)));
        d.analyse(|p, r| {
            let count = |v: i64| {
                let i = p.module.find_wire_id(v).unwrap();
                r.classes().count(r.classes_of(&p.module, i, &[]))
            };
            assert_eq!((count(1), count(own), count(gathered)), (64, 4096, 64));
            assert_eq!(count(v), 64);
        });
        cost
    });
}

#[test]
fn malformed_programs_do_not_panic() {
    let mut b = two_by_two();
    let ops = [
        "while",
        "conditional",
        "fusion",
        "call",
        "async-start",
        "async-done",
        "async-update",
        "all-gather",
        "all-gather-done",
        "all-reduce-start",
        "collective-permute-done",
        "collective-permute-start",
        "get-tuple-element",
        "tuple",
        "custom-call",
        "all-to-all",
        "copy",
        "opt-barrier",
        "reduce-scatter",
        "dynamic-slice",
    ];
    let shapes = [
        array(&[8]),
        tuple_of(vec![]),
        tuple_of(vec![array(&[8]), integer()]),
    ];
    let mut values = Vec::new();
    for op in ops {
        for shape in &shapes {
            for operands in [&[][..], &[1], &[1, 2, 3]] {
                values.push(b.op_of(op, operands, shape.clone()));
                let target: &[u8] = b"AsyncCollectiveDone";
                values.push(b.with(op, operands, shape.clone(), |i| {
                    i.called_computation_ids = vec![100_000, 77];
                    i.custom_call_target = target.to_vec();
                    i.tuple_index = 7;
                    i.channel_id = i64::MIN;
                }));
            }
        }
    }
    let d = b.finish(1);
    d.analyse(|p, r| {
        for &v in &values {
            let i = p.module.find_wire_id(v).unwrap();
            for index in [&[][..], &[0], &[1], &[-1], &[0, 0, 0]] {
                let c = r.classes().count(r.classes_of(&p.module, i, index));
                assert!((1..=4).contains(&c));
            }
        }
    });
}
