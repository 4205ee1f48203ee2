//! The golden cases and the life of handles. PERIGEE_FIXTURES is the folder tests/fixtures of the sources.
use perigee::*;
use std::cell::Cell;
use std::convert::TryInto;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use std::{env, fs, thread};

const CASES: [&str; 5] = ["kimi_k2", "kimi_k25", "kimi_k3", "kimi_linear", "moonlight"];

fn fixtures() -> PathBuf {
    env::var("PERIGEE_FIXTURES").expect("PERIGEE_FIXTURES").into()
}

fn golden(case: &str) -> PathBuf {
    fixtures().join("golden").join(case)
}

/// An int32 tensor of the expected values.
fn expected(case: &str, name: &str) -> Vec<i32> {
    let bytes = fs::read(golden(case).join("expected/expected.safetensors")).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let json = std::str::from_utf8(&bytes[8..8 + header]).unwrap();
    let entry = &json[json.find(&format!("\"{}\"", name)).unwrap()..];
    let range = &entry[entry.find("\"data_offsets\"").unwrap()..];
    let range = &range[range.find('[').unwrap() + 1..range.find(']').unwrap()];
    let at: Vec<usize> = range.split(',').map(|n| n.trim().parse().unwrap()).collect();
    bytes[8 + header + at[0]..8 + header + at[1]]
        .chunks(4)
        .map(|b| i32::from_le_bytes(b.try_into().unwrap()))
        .collect()
}

fn context() -> Context {
    let mut options = Options::new().unwrap();
    options.set("threads", "1").unwrap();
    options.set("precision", "exact").unwrap(); // as the golden continuations were computed
    Context::new(Some(&options)).unwrap()
}

fn session(case: &str) -> (Context, Model, Session) {
    let context = context();
    let model = Model::load(&context, golden(case), None).unwrap();
    let session = Session::new(&model, None).unwrap();
    (context, model, session)
}

#[test]
fn golden_cases_by_steps_and_by_generation() {
    for case in CASES {
        let (ids, greedy) = (expected(case, "ids"), expected(case, "greedy"));
        let (context, _, mut s) = session(case);
        let mut got = Vec::new();
        let mut id = argmax(s.decode(&ids, Which::Last).unwrap().row(0)).unwrap();
        for _ in &greedy {
            got.push(id);
            id = argmax(s.decode(&[id], Which::Last).unwrap().row(0)).unwrap();
        }
        assert_eq!(got, greedy, "{}", case);

        s.reset();
        let mut options = GenerationOptions::new(&context).unwrap();
        options
            .max_tokens(Some(greedy.len()))
            .unwrap()
            .default_stops(false)
            .unwrap();
        let mut generation = s.generate(&ids, Some(&options)).unwrap();
        let steps: Vec<Step> = generation.by_ref().map(|s| s.unwrap()).collect();
        generation.sampler().unwrap().accept(&[1]).unwrap();
        drop(generation);
        let got: Vec<i32> = steps.iter().filter_map(|s| s.id).collect();
        assert_eq!(got, greedy, "{}", case);
        assert_eq!(steps.last().unwrap().finish, Some(Finish::LENGTH));
    }
}

#[test]
fn state_fork_rewind_and_feed() {
    let (context, model, mut s) = session("kimi_linear");
    let ids = expected("kimi_linear", "ids");
    s.decode(&ids, Which::None).unwrap();
    let mut sampler = Sampler::new(&context).unwrap();
    sampler.temperature(1.0).unwrap().seed(7);
    let (mut state, mut fork) = (Vec::new(), s.fork().unwrap());
    s.save(Some(&sampler), &mut state).unwrap();
    assert_eq!(state.len(), s.state_size(Some(&sampler)).unwrap());
    let draw = |s: &mut Session, sampler: &mut Sampler| {
        let logits = s.decode(&[1], Which::Last).unwrap();
        (logits.values().to_vec(), sampler.sample(logits.row(0), None).unwrap())
    };
    let first = draw(&mut s, &mut sampler);
    assert_eq!(fork.decode(&[1], Which::Last).unwrap().values(), &first.0[..]);

    let mut other = Session::new(&model, None).unwrap();
    let mut loaded = Sampler::new(&context).unwrap();
    other.load(Some(&mut loaded), &state[..]).unwrap();
    assert_eq!(other.tokens(), &ids[..]);
    assert_eq!(draw(&mut other, &mut loaded), first);

    let before = other.tokens().to_vec();
    other.load(None, &state[..state.len() / 2]).unwrap_err();
    assert_eq!(other.tokens(), &before[..]);
    struct Broken;
    impl std::io::Write for Broken {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::Error::new(std::io::ErrorKind::BrokenPipe, "gone"))
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    assert_eq!(s.save(None, Broken).unwrap_err().kind(), std::io::ErrorKind::BrokenPipe);

    let again = [&ids[..], &[1][..]].concat();
    let (logits, _) = s.feed(&again, Which::Last, None).unwrap();
    assert_eq!(logits.values(), &first.0[..]);
    s.rewind(0, None).unwrap();
    assert_eq!(s.position(), 0);
}

#[test]
fn errors_carry_what_the_library_says() {
    let (context, model, mut s) = session("kimi_k2");
    let vocabulary = model.info().unwrap().vocabulary as i32;
    let e = s.decode(&[vocabulary], Which::Last).unwrap_err();
    assert_eq!(e.status(), Status::TOKEN);
    assert!(e.to_string().contains(&vocabulary.to_string()), "{}", e);
    assert_eq!(
        Model::load(&context, "/nowhere", None).unwrap_err().status(),
        Status::NOT_FOUND
    );
    assert_eq!(
        Options::new().unwrap().set("nothing", "1").unwrap_err().status(),
        Status::ARGUMENT
    );
    assert_eq!(
        Options::new().unwrap().set("threads", "1\0").unwrap_err().status(),
        Status::ARGUMENT
    );
}

#[test]
fn cancel_progress_and_panics() {
    let (context, _, mut s) = session("kimi_k3");
    let cancel = Cancel::new().unwrap();
    cancel.trigger();
    let e = s.decode_with(&[1, 2, 3], Which::Last, Some(&cancel)).unwrap_err();
    assert_eq!((e.status(), s.position()), (Status::CANCELLED, 0));
    let mut options = GenerationOptions::new(&context).unwrap();
    options.cancel(Some(&cancel)).unwrap();
    let steps: Vec<Step> = s.generate(&[1], Some(&options)).unwrap().map(|s| s.unwrap()).collect();
    assert_eq!(steps.last().unwrap().finish, Some(Finish::CANCELLED));
    cancel.reset();
    s.decode_with(&[1, 2, 3], Which::Last, Some(&cancel)).unwrap();

    let calls = Cell::new(0);
    let count = |_, _| {
        calls.set(calls.get() + 1);
        ControlFlow::Continue(())
    };
    Model::load_with(&context, golden("kimi_k3"), None, None, count).unwrap();
    assert!(calls.get() > 0);
    let e = Model::load_with(&context, golden("kimi_k3"), None, None, |_, _| ControlFlow::Break(())).unwrap_err();
    assert_eq!(e.status(), Status::CALLBACK);
    let load = || Model::load_with(&context, golden("kimi_k3"), None, None, |_, _| panic!("mine")).map(drop);
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(load)).unwrap_err();
    assert_eq!(panic.downcast_ref::<&str>(), Some(&"mine"));
}

#[test]
fn batch_queue_and_prefix_cache_give_what_one_session_gives() {
    let case = "kimi_linear";
    let (context, model, mut a) = session(case);
    let (ids, greedy) = (expected(case, "ids"), expected(case, "greedy"));
    let alone = a.decode(&ids, Which::Last).unwrap().values().to_vec();
    let (mut b, mut c) = (Session::new(&model, None).unwrap(), Session::new(&model, None).unwrap());
    let got = decode_batch(&mut [(&mut b, &ids[..]), (&mut c, &[-1][..])], None);
    assert_eq!(got[0].as_ref().unwrap(), &alone);
    assert_eq!(got[1].as_ref().unwrap_err().status(), Status::TOKEN);

    let mut cache = PrefixCache::new(&model, 1 << 30).unwrap();
    cache.put(&mut b).unwrap();
    assert!(cache.bytes() > 0);
    let longer = [&ids[..], &[1][..]].concat();
    assert_eq!(cache.get(&longer, None).unwrap().position(), ids.len());

    let mut queue = Queue::new(&model, None, 2).unwrap();
    let mut options = GenerationOptions::new(&context).unwrap();
    options
        .max_tokens(Some(greedy.len()))
        .unwrap()
        .default_stops(false)
        .unwrap();
    let got = Arc::new(Mutex::new(vec![Vec::new(); 4]));
    for _ in 0..3 {
        let got = got.clone();
        let take = move |request: i64, step: Result<Step>| {
            got.lock().unwrap()[request as usize].extend(step.unwrap().id);
            ControlFlow::Continue(())
        };
        queue.submit(&ids, Some(&options), take).unwrap();
    }
    queue.run().unwrap();
    assert!(got.lock().unwrap()[1..].iter().all(|g| g == &greedy));
    assert_eq!(Arc::strong_count(&got), 1, "a callback was not released");
    queue.submit(&ids, None, |_, _| panic!("mine")).unwrap();
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| queue.run())).unwrap_err();
}

#[test]
fn describe_plan_kernels_options_log() {
    let lines = Arc::new(AtomicUsize::new(0));
    let mut o = Options::new().unwrap();
    o.set("log_level", "4").unwrap();
    let counter = lines.clone();
    let log = Box::new(move |_, _: &str| {
        counter.fetch_add(1, Ordering::Relaxed);
    });
    let context = Context::with(Some(&o), Some(log), None).unwrap();
    let description = Model::describe(&context, golden("kimi_k3")).unwrap();
    assert_eq!(description.family, "kimi_k3");
    assert_eq!(
        description.components.iter().map(|c| c.total).sum::<i64>(),
        description.parameters
    );
    assert!(Model::plan(&context, golden("kimi_k3"), None).unwrap().fits);
    let kernels = context.kernels().unwrap();
    assert!(kernels.iter().any(|k| k.op == "matmul" && k.in_use));
    assert!(options().unwrap().iter().any(|o| o.name == "threads"));
    drop(Model::load(&context, env::var("PERIGEE_STRAY_MODEL").unwrap(), None).unwrap());
    assert!(lines.load(Ordering::Relaxed) > 0);
    drop(context);
    assert_eq!(Arc::strong_count(&lines), 1, "the log was not released");
}

#[test]
fn a_kernel_of_the_host() {
    let case = "kimi_linear";
    let (ids, greedy) = (expected(case, "ids"), expected(case, "greedy"));
    let calls = Arc::new(AtomicUsize::new(0));
    let counter = calls.clone();
    let mut set = KernelSet::new().unwrap();
    set.product("matmul_bf16_rust", Weight::BF16, move |p, put| {
        counter.fetch_add(1, Ordering::Relaxed);
        for r in 0..p.count {
            let w: Vec<f64> = p
                .weights(r)
                .chunks(2)
                .map(|b| f64::from(f32::from_bits(u32::from_le_bytes([0, 0, b[0], b[1]]))))
                .collect();
            for t in 0..p.tokens {
                put(
                    t,
                    r,
                    w.iter().zip(p.x(t)).map(|(w, x)| w * f64::from(*x)).sum::<f64>() as f32,
                );
            }
        }
        true
    })
    .unwrap();
    let context = Context::with(None, None, Some(&set)).unwrap();
    drop(set);
    assert!(context
        .kernels()
        .unwrap()
        .iter()
        .any(|k| k.name == "matmul_bf16_rust" && k.in_use));
    let model = Model::load(&context, golden(case), None).unwrap();
    let mut s = Session::new(&model, None).unwrap();
    let first = argmax(s.decode(&ids, Which::Last).unwrap().row(0)).unwrap();
    assert_eq!(first, greedy[0]);
    assert!(calls.load(Ordering::Relaxed) > 0);
    drop((s, model, context));
    assert_eq!(Arc::strong_count(&calls), 1, "the kernel was not released");

    let mut set = KernelSet::new().unwrap();
    set.product("matmul_bf16_failing", Weight::BF16, |_, _| panic!("mine"))
        .unwrap();
    let context = Context::with(None, None, Some(&set)).unwrap();
    let model = Model::load(&context, golden(case), None).unwrap();
    let e = Session::new(&model, None)
        .unwrap()
        .decode(&ids, Which::Last)
        .unwrap_err();
    assert_eq!(e.status(), Status::KERNEL);
}

#[test]
fn a_plugin_traced_and_checked() {
    let path = env::var("PERIGEE_PLUGIN").expect("PERIGEE_PLUGIN");
    let mut options = Options::new().unwrap();
    for (name, value) in [
        ("threads", "1"),
        ("plugins", &path),
        ("trace_kernels", "1"),
        ("check_kernels", "1"),
    ] {
        options.set(name, value).unwrap();
    }
    let context = Context::new(Some(&options)).unwrap();
    let listed = context
        .kernels()
        .unwrap()
        .iter()
        .position(|k| k.origin == path && k.name == "matmul_bf16_example" && k.in_use)
        .expect("the plugin's row is not in use");
    let case = "kimi_linear";
    let model = Model::load(&context, golden(case), None).unwrap();
    let mut s = Session::new(&model, None).unwrap();
    let logits = s.decode(&expected(case, "ids"), Which::Last).unwrap();
    assert_eq!(argmax(logits.row(0)).unwrap(), expected(case, "greedy")[0]);
    let check = context.kernel_check().unwrap();
    assert!(check.calls > 0 && check.skipped == 0 && check.largest > 0.0 && check.largest <= 1.0);
    assert_eq!((check.different, check.first), (0, None));
    let trace = context.kernel_trace().unwrap();
    assert!(trace.iter().all(|t| t.calls > 0 && t.seconds > 0.0 && t.cols > 0));
    for name in ["matmul_bf16_example", "rms_norm_example"] {
        assert!(trace.iter().any(|t| t.kernel == name));
    }
    let timing = context.time_kernel(listed, 2).unwrap();
    assert!(timing.seconds > 0.0 && timing.tokens == 2);
    assert_eq!(timing.multiply_adds, (2 * timing.rows * timing.cols) as i64);
    assert_eq!(context.time_kernel(listed, 0).unwrap_err().status(), Status::RANGE);
    let plain = Context::new(None).unwrap();
    assert_eq!(plain.kernel_check().unwrap_err().status(), Status::STATE);
    options.set("plugins", &(path + ".none")).unwrap();
    let e = Context::new(Some(&options)).unwrap_err();
    assert!(e.status() == Status::KERNEL && e.to_string().contains(".none"));
}

#[test]
fn text_chat_and_constraints() {
    let context = context();
    let folder = match env::var("PERIGEE_TEXT_MODEL") {
        Ok(f) => PathBuf::from(f),
        Err(e) => panic!("PERIGEE_TEXT_MODEL: {}", e),
    };
    let tokenizer = Tokenizer::open(&context, folder).unwrap();
    let said = "Grüße, 世界! <|im_end|>";
    let ids = tokenizer.encode(said).unwrap();
    assert_eq!(tokenizer.decode(&ids, false).unwrap(), said.as_bytes());
    let mut decoder = Decoder::new(&tokenizer, true).unwrap();
    let mut streamed = String::new();
    for id in &ids {
        streamed += decoder.push(*id).unwrap();
    }
    streamed += decoder.flush().unwrap();
    assert_eq!(streamed, said);
    assert!(tokenizer.encode_markup("x").unwrap().len() == 1);

    let messages = r#"[{"role":"user","content":"Hi"}]"#;
    let chat = Chat::render(&tokenizer, messages, None, &ChatOptions::default()).unwrap();
    assert!(chat.text().contains("Hi"));
    let parts: usize = chat.segments().unwrap().iter().map(|s| s.ids.len()).sum();
    assert_eq!(parts, chat.ids().len());
    let e = Chat::render(&tokenizer, "[{", None, &ChatOptions::default()).unwrap_err();
    assert_eq!(e.status(), Status::FORMAT);
    assert!(e.offset().is_some());
    let mut parser = Parser::new(&tokenizer, Some(&chat)).unwrap();
    let mut deltas = Vec::new();
    for id in tokenizer.encode("Hello").unwrap() {
        deltas.extend(parser.push(id).unwrap());
    }
    deltas.extend(parser.finish().unwrap());
    assert_eq!(deltas.last(), Some(&Delta::End));
    assert!(parser.message().unwrap().contains("Hello"));

    let mut c = Constraint::from_regex(&tokenizer, "ab").unwrap();
    let digit = tokenizer.encode("7").unwrap()[0];
    c.accept(digit).unwrap_err();
    for id in tokenizer.encode("ab").unwrap() {
        let (bits, _) = c.allowed().unwrap();
        assert!(bits[id as usize / 64] >> (id % 64) & 1 == 1);
        c.accept(id).unwrap();
    }
    assert_ne!(c.complete(), Completeness::Open);
    assert_eq!(
        Constraint::from_schema(&tokenizer, "{").unwrap_err().status(),
        Status::SCHEMA
    );
}

#[test]
fn samplers() {
    let context = context();
    let logits = [0.5, 3.0, 2.0, -1.0];
    assert_eq!(argmax(&logits).unwrap(), 1);
    assert_eq!(top_k(&context, &logits, 2).unwrap(), [(1, 3.0), (2, 2.0)]);
    let p = log_probabilities(&logits, &[0, 1, 2, 3]).unwrap();
    assert!((p.iter().map(|p| p.exp()).sum::<f64>() - 1.0).abs() < 1e-12);
    let mut s = Sampler::new(&context).unwrap();
    s.bias(&[(1, -100.0)]).unwrap().top_k(1).unwrap();
    assert_eq!(s.sample(&logits, None).unwrap(), 2);
    let mut drawn = Sampler::new(&context).unwrap();
    drawn.temperature(2.0).unwrap().seed(3);
    let mut copy = drawn.try_clone().unwrap();
    let draw = |s: &mut Sampler| (0..50).map(|_| s.sample(&logits, None).unwrap()).collect::<Vec<_>>();
    assert_eq!(draw(&mut drawn), draw(&mut copy));
    assert_eq!(s.top_p(2.0).unwrap_err().status(), Status::RANGE);
}

#[test]
fn handles_go_in_any_order_and_cross_threads() {
    let (context, model, mut s) = session("kimi_k2");
    drop(context);
    let copy = Session::new(&model, None).unwrap();
    drop(model);
    let there = thread::spawn(move || {
        let mut copy = copy;
        copy.decode(&[1, 2], Which::Last).unwrap().values().to_vec()
    });
    let here = s.decode(&[1, 2], Which::Last).unwrap().values().to_vec();
    assert_eq!(there.join().unwrap(), here);
}

/// What the safe layer costs over the raw call: pairs of steps on one session, each after a rewind to 0.
#[test]
fn overhead_of_a_step() {
    let (_context, model, mut s) = session("kimi_k2");
    let m = model.info().unwrap().vocabulary as usize;
    assert_eq!(s.decode(&[1], Which::Last).unwrap().values().len(), m);
    let mut differences: Vec<f64> = (0..400)
        .map(|_| {
            s.reset();
            let start = Instant::now();
            s.decode(&[1], Which::Last).unwrap();
            let safe = start.elapsed();
            s.reset();
            let start = Instant::now();
            s.decode_raw(&[1]);
            safe.as_secs_f64() - start.elapsed().as_secs_f64()
        })
        .collect();
    differences.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let median = differences[differences.len() / 2];
    println!("overhead of a step: {:.2} us", median * 1e6);
    assert!(median < 5e-6);
}
