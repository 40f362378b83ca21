package varve.teavm;

import org.teavm.model.ClassHolder;
import org.teavm.model.ClassHolderTransformer;
import org.teavm.model.ClassHolderTransformerContext;
import org.teavm.model.ElementModifier;
import org.teavm.model.MethodHolder;
import org.teavm.model.emit.ProgramEmitter;
import org.teavm.model.emit.ValueEmitter;

/**
 * Has {@code synchronized} of programs without threads enter and leave monitors that are beside the objects: see {@link Monitors}. Code that may
 * wait for another thread keeps the compiler's.
 */
final class MonitorTransformer implements ClassHolderTransformer {
    @Override
    public void transformClass(ClassHolder cls, ClassHolderTransformerContext context) {
        if (!cls.getName().equals("java.lang.Object")) {
            return;
        }
        for (MethodHolder method : cls.getMethods()) {
            switch (method.getName()) {
                case "monitorEnterSync" -> call(method, "enter", context);
                case "monitorExitSync" -> call(method, "exit", context);
                case "notify", "notifyAll" -> call(method, "notified", context);
                case "holdsLock" -> {
                    ProgramEmitter body = ProgramEmitter.create(method, context.getHierarchy());
                    body.invoke(Monitors.class, "holds", boolean.class, body.var(1, Object.class)).returnValue();
                }
                default -> {
                }
            }
        }
    }

    private static void call(MethodHolder method, String name, ClassHolderTransformerContext context) {
        ProgramEmitter body = ProgramEmitter.create(method, context.getHierarchy());
        ValueEmitter object = body.var(method.hasModifier(ElementModifier.STATIC) ? 1 : 0, Object.class);
        body.invoke(Monitors.class, name, object);
        body.exit();
    }
}
