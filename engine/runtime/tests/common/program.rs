//! A module in text form with a store of its own.

use varve_runtime::*;

pub struct Program {
    pub store: Store<()>,
    pub instance: Instance,
}

impl Program {
    /// The module may import `math.sqrt` and `math.hypot`, and the number `env.number`.
    pub fn with_number(config: Config, wat: &str, number: i32) -> Program {
        let engine = Engine::new(config);
        let module = Module::new(&engine, &wat::parse_str(wat).unwrap()).unwrap();
        let mut store = Store::new(&engine, ()).unwrap();
        let mut linker = Linker::new(&engine);
        linker.func_leaf("math", "sqrt", Leaf::Sqrt);
        extern "C" fn hypot(x: f64, y: f64) -> f64 {
            x.hypot(y)
        }
        linker.func_leaf("math", "hypot", Leaf::Binary(hypot));
        let global = Global::new(&mut store, ValType::I32, false, Val::I32(number));
        linker.define("env", "number", global.unwrap());
        let instance = linker.instantiate(&mut store, &module).unwrap();
        Program { store, instance }
    }

    pub fn call<P: WasmTypes, R: WasmResults>(&mut self, name: &str, params: P) -> Result<R> {
        let f = self
            .instance
            .get_typed_func::<P, R>(&mut self.store, name)?;
        f.call(&mut self.store, params)
    }

    pub fn stats(&self) -> CompilerStats {
        self.store.compiler_stats()
    }
}
