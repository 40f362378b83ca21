package varve.host;

import java.io.InputStream;
import org.teavm.model.AccessLevel;
import org.teavm.model.ClassHolder;
import org.teavm.model.ClassHolderTransformer;
import org.teavm.model.ClassHolderTransformerContext;
import org.teavm.model.ElementModifier;
import org.teavm.model.MethodDescriptor;
import org.teavm.model.MethodHolder;
import org.teavm.model.emit.ProgramEmitter;

/** Gives {@link System} and {@link Runtime} what the class library lacks: exit, standard input, clock, environment. */
final class SystemTransformer implements ClassHolderTransformer {
    private static final MethodDescriptor EXIT = new MethodDescriptor("exit", int.class, void.class);
    private static final MethodDescriptor IN = new MethodDescriptor("in", InputStream.class);
    private static final MethodDescriptor NANO_TIME = new MethodDescriptor("nanoTime", long.class);
    private static final MethodDescriptor GETENV = new MethodDescriptor("getenv", String.class, String.class);

    @Override
    public void transformClass(ClassHolder cls, ClassHolderTransformerContext context) {
        if (cls.getName().equals("java.lang.System")) {
            ProgramEmitter exit = body(cls, EXIT, context);
            exit.invoke(Process.class, "exit", exit.var(1, int.class)).exit();
            body(cls, IN, context).invoke(StandardInput.class, "instance", InputStream.class).returnValue();
            body(cls, NANO_TIME, context).invoke(Process.class, "nanoTime", long.class).returnValue();
            ProgramEmitter getenv = body(cls, GETENV, context);
            getenv.invoke(Process.class, "environment", String.class, getenv.var(1, String.class)).returnValue();
        } else if (cls.getName().equals("java.lang.Runtime")) {
            cls.getMethod(EXIT).getModifiers().remove(ElementModifier.NATIVE);
            ProgramEmitter exit = ProgramEmitter.create(cls.getMethod(EXIT), context.getHierarchy());
            exit.invoke(Process.class, "exit", exit.var(1, int.class)).exit();
        }
    }

    /** The empty body of a static public method, in place of the one that may be there. */
    private static ProgramEmitter body(ClassHolder cls, MethodDescriptor descriptor, ClassHolderTransformerContext context) {
        MethodHolder old = cls.getMethod(descriptor);
        if (old != null) {
            cls.removeMethod(old);
        }
        MethodHolder method = new MethodHolder(descriptor);
        method.setLevel(AccessLevel.PUBLIC);
        method.getModifiers().add(ElementModifier.STATIC);
        cls.addMethod(method);
        return ProgramEmitter.create(method, context.getHierarchy());
    }
}
