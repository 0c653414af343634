//! The part of the PJRT C API that compiles ahead of time: nine functions of a compiler's shared
//! library, called by their place in its table. The one file that has `unsafe` code.
//!
//! In: path of a library, a topology's name, a program and options as bytes. Out: what the compiler
//! answered. Runs in the child process alone: a compiler that crashes takes nothing else with it.
//!
//! Why this is sound:
//! - The table is append-only and every struct tells its size, by PJRT's own rules. The library's
//!   major version must be ours, and its table must reach as far as the last function used here;
//!   the structs below are those of version 0.54, whose sizes later versions take as "an older
//!   caller's": a library fills in only what the caller's size covers.
//! - Pointers that the library hands out are read at once and copied, while what owns them lives.
//! - Nothing is given to it that does not live until the call returns; compiling is synchronous.
//! - Handles are not destroyed and the library is never unloaded: the process ends right after.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::path::Path;
use std::ptr;

/// The major version of the interface that is spoken here.
const MAJOR: i32 = 0;
/// The oldest minor version whose table and structs are known to be those below.
const OLDEST_MINOR: i32 = 54;
/// Functions of the table as far as they are used.
const FUNCTIONS: usize = 90;

/// Places in the table, counted from its first function.
mod place {
    pub(super) const ERROR_DESTROY: usize = 0;
    pub(super) const ERROR_MESSAGE: usize = 1;
    pub(super) const ERROR_GET_CODE: usize = 2;
    pub(super) const PLUGIN_INITIALIZE: usize = 3;
    pub(super) const DEVICE_DESCRIPTION_KIND: usize = 26;
    pub(super) const TOPOLOGY_CREATE: usize = 82;
    pub(super) const TOPOLOGY_PLATFORM_VERSION: usize = 85;
    pub(super) const TOPOLOGY_DEVICES: usize = 86;
    pub(super) const COMPILE: usize = 89;
}

/// What every struct of arguments begins with.
#[repr(C)]
struct Head {
    struct_size: usize,
    extension_start: *mut c_void,
}

#[repr(C)]
struct Version {
    head: Head,
    major: i32,
    minor: i32,
}

/// Every function takes its arguments' struct and returns an error, or null. (The first two return
/// nothing; what is then in the return register is not looked at.)
type Function = unsafe extern "C" fn(*mut c_void) -> *mut c_void;

/// The table, which 64-bit machines alone are known to have in this form.
#[repr(C)]
struct Api {
    head: Head,
    version: Version,
    functions: [Option<Function>; FUNCTIONS],
}

/// A struct of arguments as the C API has it.
///
/// # Safety
/// `repr(C)`, begins with [`Head`], and valid when all zero.
unsafe trait Args: Sized {
    /// Its size as C's header computes it: up to the end of the last field, without padding.
    const SIZE: usize;
}

macro_rules! args {
    ($name:ident of $size:literal bytes: $($field:ident: $type:ty,)*) => {
        #[repr(C)]
        struct $name {
            head: Head,
            $($field: $type,)*
        }
        // SAFETY: integers and raw pointers only, after a head.
        unsafe impl Args for $name {
            const SIZE: usize = $size;
        }
        const _: () = assert!(size_of::<$name>().next_multiple_of(8) == usize::next_multiple_of($size, 8));
    };
}

args! { InitializeArgs of 16 bytes: }
args! { ErrorArgs of 24 bytes: error: *mut c_void, }
args! { CodeArgs of 28 bytes: error: *mut c_void, code: i32, }
args! { MessageArgs of 40 bytes: error: *mut c_void, text: *const u8, size: usize, }
args! { KindArgs of 40 bytes: device: *mut c_void, text: *const u8, size: usize, }
args! { PlatformVersionArgs of 40 bytes: topology: *mut c_void, text: *const u8, size: usize, }
args! { DevicesArgs of 40 bytes: topology: *mut c_void, devices: *const *mut c_void, count: usize, }
args! { TopologyArgs of 56 bytes:
    name: *const u8,
    name_size: usize,
    options: *const c_void,
    option_count: usize,
    topology: *mut c_void,
}
args! { Program of 48 bytes:
    code: *const u8,
    code_size: usize,
    format: *const u8,
    format_size: usize,
}
args! { CompileArgs of 64 bytes:
    topology: *mut c_void,
    program: *const Program,
    options: *const u8,
    options_size: usize,
    client: *mut c_void,
    executable: *mut c_void,
}

fn zeroed<A: Args>() -> A {
    // SAFETY: an `Args` is valid when all zero.
    let mut args: A = unsafe { std::mem::zeroed() };
    // SAFETY: it begins with a `Head`.
    unsafe { (*ptr::from_mut(&mut args).cast::<Head>()).struct_size = A::SIZE };
    args
}

/// What a library said instead of doing what it was asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// A canonical code: 3 is a bad argument, 8 out of memory, 12 not implemented.
    pub(crate) code: i32,
    /// Its words.
    pub(crate) message: String,
}

/// Why a library could not be used at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LoadError {
    /// It is no shared library, or none for this machine.
    NotALibrary(String),
    /// It has no `GetPjrtApi`.
    NotACompiler,
    /// It speaks another version of the interface.
    Version {
        /// Its version.
        major: i32,
        /// And the part after the point.
        minor: i32,
    },
    /// It did not start.
    Initialize(Refusal),
}

/// A loaded compiler.
pub(crate) struct Compiler {
    api: *const Api,
    /// Version of the interface.
    pub(crate) version: (i32, i32),
}

/// Devices to compile for.
pub(crate) struct Topology {
    handle: *mut c_void,
    /// How the platform calls itself, with the compiler's version.
    pub(crate) platform_version: String,
    /// Name of its devices, `TPU v6 lite`.
    pub(crate) device_kind: String,
    /// How many devices.
    pub(crate) devices: usize,
}

impl Compiler {
    /// Loads and starts the library at `path`.
    pub(crate) fn load(path: &Path) -> Result<Compiler, LoadError> {
        // SAFETY: loading runs the library's initialisers. It is one that the user named or
        // installed, it would run in their own program too, and this process is for it alone.
        let library = unsafe { libloading::Library::new(path) }.map_err(|e| {
            let why = std::error::Error::source(&e).map(|s| s.to_string());
            LoadError::NotALibrary(why.unwrap_or_else(|| e.to_string()))
        })?;
        // SAFETY: the type that PJRT gives to this name.
        let get = unsafe { library.get::<unsafe extern "C" fn() -> *const Api>(b"GetPjrtApi\0") };
        let get = get.map_err(|_| LoadError::NotACompiler)?;
        // SAFETY: as above; it takes nothing.
        let api = unsafe { get() };
        // The table lives in the library, which stays.
        std::mem::forget(library);
        if api.is_null() || !api.is_aligned() {
            return Err(LoadError::NotACompiler);
        }
        // Only as much is read as the table says it has.
        // SAFETY: any table has at least a size and, by it, a version.
        let (size, version) = unsafe {
            let size = (*api).head.struct_size;
            if size < std::mem::offset_of!(Api, functions) {
                return Err(LoadError::NotACompiler);
            }
            (size, ((*api).version.major, (*api).version.minor))
        };
        let (major, minor) = version;
        if major != MAJOR || minor < OLDEST_MINOR || size < size_of::<Api>() {
            return Err(LoadError::Version { major, minor });
        }
        let compiler = Compiler { api, version };
        let start = compiler.call(place::PLUGIN_INITIALIZE, &mut zeroed::<InitializeArgs>());
        start.map_err(LoadError::Initialize)?;
        Ok(compiler)
    }

    /// Devices by the platform's name for them, `v6e:2x2`.
    pub(crate) fn topology(&self, name: &str) -> Result<Topology, Refusal> {
        let mut args: TopologyArgs = zeroed();
        (args.name, args.name_size) = (name.as_ptr(), name.len());
        self.call(place::TOPOLOGY_CREATE, &mut args)?;
        let handle = args.topology;
        let mut version: PlatformVersionArgs = zeroed();
        version.topology = handle;
        self.call(place::TOPOLOGY_PLATFORM_VERSION, &mut version)?;
        // SAFETY: the topology owns the text and lives on.
        let platform_version = unsafe { text(version.text, version.size) };
        let mut devices: DevicesArgs = zeroed();
        devices.topology = handle;
        self.call(place::TOPOLOGY_DEVICES, &mut devices)?;
        let mut device_kind = String::new();
        if devices.count > 0 && !devices.devices.is_null() {
            let mut kind: KindArgs = zeroed();
            // SAFETY: there are `count` of them, and the topology owns them.
            kind.device = unsafe { *devices.devices };
            self.call(place::DEVICE_DESCRIPTION_KIND, &mut kind)?;
            // SAFETY: the device owns the text and lives on.
            device_kind = unsafe { text(kind.text, kind.size) };
        }
        Ok(Topology {
            handle,
            platform_version,
            device_kind,
            devices: devices.count,
        })
    }

    /// Compiles an HloModuleProto with a CompileOptionsProto. What comes of it is in the files that
    /// the options ask for.
    pub(crate) fn compile(
        &self,
        topology: &Topology,
        module: &[u8],
        options: &[u8],
    ) -> Result<(), Refusal> {
        const FORMAT: &[u8] = b"hlo";
        let mut program: Program = zeroed();
        (program.code, program.code_size) = (module.as_ptr(), module.len());
        (program.format, program.format_size) = (FORMAT.as_ptr(), FORMAT.len());
        let mut args: CompileArgs = zeroed();
        args.topology = topology.handle;
        args.program = &program;
        (args.options, args.options_size) = (options.as_ptr(), options.len());
        self.call(place::COMPILE, &mut args)
    }

    fn call<A: Args>(&self, place: usize, args: &mut A) -> Result<(), Refusal> {
        let Some(function) = self.function(place) else {
            return Err(Refusal {
                code: 12,
                message: format!("function {place} of the interface is missing"),
            });
        };
        // SAFETY: the table's function at this place takes this struct, which is whole.
        let error = unsafe { function(ptr::from_mut(args).cast()) };
        match error.is_null() {
            true => Ok(()),
            false => Err(self.refusal(error)),
        }
    }

    /// Reads an error and gives it back.
    fn refusal(&self, error: *mut c_void) -> Refusal {
        let (mut message, mut code) = (zeroed::<MessageArgs>(), zeroed::<CodeArgs>());
        (message.error, code.error) = (error, error);
        let mut out = Refusal {
            code: 2,
            message: String::new(),
        };
        // SAFETY: as in `call`; the error lives until it is destroyed, last, and its text with it.
        unsafe {
            if let Some(get) = self.function(place::ERROR_MESSAGE) {
                get(ptr::from_mut(&mut message).cast());
                out.message = text(message.text, message.size);
            }
            if let Some(get) = self.function(place::ERROR_GET_CODE) {
                get(ptr::from_mut(&mut code).cast());
                out.code = code.code;
            }
            if let Some(destroy) = self.function(place::ERROR_DESTROY) {
                let mut args: ErrorArgs = zeroed();
                args.error = error;
                destroy(ptr::from_mut(&mut args).cast());
            }
        }
        out
    }

    fn function(&self, place: usize) -> Option<Function> {
        // SAFETY: the table is as long as `FUNCTIONS`, which was looked at, and never goes away.
        unsafe { (*self.api).functions.get(place).copied().flatten() }
    }
}

/// # Safety
/// `size` bytes at `at`, or null.
unsafe fn text(at: *const u8, size: usize) -> String {
    if at.is_null() || size == 0 {
        return String::new();
    }
    // SAFETY: the caller's.
    let bytes = unsafe { std::slice::from_raw_parts(at, size) };
    String::from_utf8_lossy(bytes).into_owned()
}
