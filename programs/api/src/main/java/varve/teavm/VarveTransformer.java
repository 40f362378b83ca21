package varve.teavm;

import org.teavm.model.ClassHolder;
import org.teavm.model.ClassHolderTransformer;
import org.teavm.model.ClassHolderTransformerContext;
import org.teavm.model.MethodDescriptor;
import org.teavm.model.emit.ProgramEmitter;

/** Has the methods of {@link varve.Varve}, which do nothing elsewhere, call the runtime. */
final class VarveTransformer implements ClassHolderTransformer {
    private static final MethodDescriptor CRITICAL = new MethodDescriptor("critical", Object.class, Object.class);
    private static final MethodDescriptor SAMPLING = new MethodDescriptor("sampling", boolean.class);
    private static final MethodDescriptor INTERVAL =
            new MethodDescriptor("interval", long.class, long.class, long.class, void.class);

    @Override
    public void transformClass(ClassHolder cls, ClassHolderTransformerContext context) {
        if (!cls.getName().equals("varve.Varve")) {
            return;
        }
        ProgramEmitter critical = ProgramEmitter.create(cls.getMethod(CRITICAL), context.getHierarchy());
        critical.invoke(Imports.class, "critical", Object.class, critical.var(1, Object.class)).returnValue();
        ProgramEmitter sampling = ProgramEmitter.create(cls.getMethod(SAMPLING), context.getHierarchy());
        sampling.invoke(Imports.class, "sampling", boolean.class).returnValue();
        ProgramEmitter interval = ProgramEmitter.create(cls.getMethod(INTERVAL), context.getHierarchy());
        interval.invoke(Imports.class, "interval", interval.var(1, long.class), interval.var(2, long.class),
                interval.var(3, long.class)).exit();
        ProgramEmitter durable = emitter(cls, context, "durable", boolean.class);
        durable.invoke(Imports.class, "durable", boolean.class).returnValue();
        ProgramEmitter unit = emitter(cls, context, "unit", int.class, void.class);
        unit.invoke(Imports.class, "unit", unit.var(1, int.class)).exit();
        ProgramEmitter found = emitter(cls, context, "found", Object.class);
        found.invoke(Initializers.class, "run");
        found.invoke(Boxes.class, "fill");
        found.invoke(Imports.class, "found", Object.class).returnValue();
        ProgramEmitter keep = emitter(cls, context, "keep", Object.class, void.class);
        keep.invoke(Imports.class, "keep", keep.var(1, Object.class)).exit();
        for (String name : new String[] {"begin", "end", "rollback"}) {
            emitter(cls, context, name, void.class).invoke(Imports.class, name).exit();
        }
    }

    private static ProgramEmitter emitter(ClassHolder cls, ClassHolderTransformerContext context, String name, Class<?>... signature) {
        return ProgramEmitter.create(cls.getMethod(new MethodDescriptor(name, signature)), context.getHierarchy());
    }
}
