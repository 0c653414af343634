//! A compiler for tests: the PJRT functions that xpeak calls, as a shared library without
//! dependencies. The topology's name says how it behaves; its dump is the smallest there is.

use std::ffi::c_void;
use std::io::Write;
use std::sync::Mutex;

type Function = unsafe extern "C" fn(*mut usize) -> *mut c_void;

#[repr(C)]
struct Api {
    struct_size: usize,
    extension: usize,
    version: [usize; 2],
    major: i32,
    minor: i32,
    functions: [Option<Function>; 120],
}

static TOPOLOGY: Mutex<String> = Mutex::new(String::new());
static MESSAGE: Mutex<(i32, String)> = Mutex::new((0, String::new()));

// Arguments are a row of machine words: size, extension, and what the function has.
unsafe extern "C" fn nothing(_: *mut usize) -> *mut c_void {
    std::ptr::null_mut()
}

unsafe extern "C" fn message(args: *mut usize) -> *mut c_void {
    let text = Box::leak(MESSAGE.lock().unwrap().1.clone().into_boxed_str());
    *args.add(3) = text.as_ptr() as usize;
    *args.add(4) = text.len();
    std::ptr::null_mut()
}

unsafe extern "C" fn code(args: *mut usize) -> *mut c_void {
    *args.add(3).cast::<i32>() = MESSAGE.lock().unwrap().0;
    std::ptr::null_mut()
}

fn error(code: i32, text: &str) -> *mut c_void {
    *MESSAGE.lock().unwrap() = (code, text.to_owned());
    1 as *mut c_void
}

unsafe extern "C" fn topology(args: *mut usize) -> *mut c_void {
    let name = std::slice::from_raw_parts(*args.add(2) as *const u8, *args.add(3));
    let name = String::from_utf8_lossy(name).into_owned();
    if name.starts_with("unknown") {
        return error(3, "Invalid TPU external name");
    }
    *TOPOLOGY.lock().unwrap() = name;
    *args.add(6) = 1;
    std::ptr::null_mut()
}

unsafe extern "C" fn platform_version(args: *mut usize) -> *mut c_void {
    let text = "a fake\nBuilt today cl/42";
    *args.add(3) = text.as_ptr() as usize;
    *args.add(4) = text.len();
    std::ptr::null_mut()
}

unsafe extern "C" fn devices(args: *mut usize) -> *mut c_void {
    static FOUR: [usize; 4] = [1; 4];
    *args.add(3) = FOUR.as_ptr() as usize;
    *args.add(4) = FOUR.len();
    std::ptr::null_mut()
}

unsafe extern "C" fn kind(args: *mut usize) -> *mut c_void {
    let text = "TPU v6 lite";
    *args.add(3) = text.as_ptr() as usize;
    *args.add(4) = text.len();
    std::ptr::null_mut()
}

unsafe extern "C" fn compile(_: *mut usize) -> *mut c_void {
    if let Some(file) = std::env::var_os("FAKE_PIDS") {
        let file = std::fs::File::options().create(true).append(true).open(file);
        let _ = writeln!(file.unwrap(), "{}", std::process::id());
    }
    println!("a line on standard output");
    let topology = TOPOLOGY.lock().unwrap().clone();
    let dump = |stage: &str, bytes: &[u8]| {
        std::fs::write(format!("dump/module_0000.m.cl_42.{stage}.hlo.pb"), bytes).unwrap();
    };
    // A module named m, and an assignment of one allocation of 1 GiB.
    let whole = [
        0x0a, 3, 0x0a, 1, b'm', 0x1a, 10, 0x1a, 8, 0x08, 0, 0x10, 0x80, 0x80, 0x80, 0x80, 0x04,
    ];
    let sleep = || std::thread::sleep(std::time::Duration::from_secs(600));
    match topology.as_str() {
        "fits" => {
            dump("after_optimizations", &whole[..7]);
            std::thread::sleep(std::time::Duration::from_millis(50));
            dump("after_optimizations", &whole);
            dump("after_optimizations_after_buffer_assignment", b"");
            sleep();
        }
        "memory" => {
            dump("after_optimizations", &whole);
            return error(8, "Ran out of memory: 1.0G exceeds available HBM (0.5G).");
        }
        "crash" => {
            eprintln!("something is badly wrong");
            std::process::abort();
        }
        "leave" => std::process::exit(7),
        "hang" | "hang:" => sleep(),
        "flag" => return error(3, "No such compile option: 'nonsense'"),
        "refuse" => return error(3, "instruction x has a wrong shape"),
        _ => {}
    }
    std::ptr::null_mut()
}

#[no_mangle]
pub extern "C" fn GetPjrtApi() -> *const c_void {
    let mut functions: [Option<Function>; 120] = [Some(nothing); 120];
    functions[1] = Some(message);
    functions[2] = Some(code);
    functions[26] = Some(kind);
    functions[82] = Some(topology);
    functions[85] = Some(platform_version);
    functions[86] = Some(devices);
    functions[89] = Some(compile);
    let old = std::env::var_os("FAKE_OLD").is_some();
    let api = Api {
        struct_size: std::mem::size_of::<Api>(),
        extension: 0,
        version: [24, 0],
        major: 0,
        minor: if old { 30 } else { 117 },
        functions,
    };
    Box::leak(Box::new(api)) as *const Api as *const c_void
}
