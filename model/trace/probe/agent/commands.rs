//! The machine's own diagnostic commands.
//!
//! They are run by the method behind the platform's `DiagnosticCommand` bean. The bean itself would start the platform's whole
//! management service, which is hundreds of classes that the program never asked for.

use super::jvm::{Handle, Jni};

/// Runs commands. Both references stay valid, and every thread of the machine may use them.
#[derive(Clone, Copy)]
pub struct Commands {
    /// An object of the class with the method.
    object: Handle,
    execute: Handle,
}

impl Commands {
    /// Finds the method.
    ///
    /// # Errors
    /// The class, method or memory that the machine lacks.
    pub fn find(jni: Jni) -> Result<Commands, &'static str> {
        const MISSING: &str =
            "its image has no module jdk.management (jlink --add-modules jdk.management)";
        // Its initialization loads the library that the method is in.
        let provider = c"com/sun/management/internal/PlatformMBeanProviderImpl";
        let provider = jni.class(provider).ok_or(MISSING)?;
        jni.method(provider, c"<init>", c"()V").ok_or(MISSING)?;
        let class = c"com/sun/management/internal/DiagnosticCommandImpl";
        let class = jni.class(class).ok_or(MISSING)?;
        let signature = c"(Ljava/lang/String;)Ljava/lang/String;";
        let execute = jni.method(class, c"executeDiagnosticCommand", signature);
        let execute = execute.ok_or("it runs no diagnostic commands")?;
        let object = jni.allocate(class).and_then(|object| jni.keep(object));
        let object = object.ok_or("it has no memory left")?;
        Ok(Commands { object, execute })
    }

    /// Output of a command; `None` if it failed.
    pub fn ask(&self, jni: Jni, command: &str) -> Option<String> {
        let words = jni.string(command)?;
        let answer = jni.call(self.object, self.execute, &[words]);
        jni.forget(words);
        let text = jni.text(answer?);
        answer.into_iter().for_each(|answer| jni.forget(answer));
        text
    }
}
