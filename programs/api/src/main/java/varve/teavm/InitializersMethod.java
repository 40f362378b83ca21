package varve.teavm;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.teavm.dependency.DependencyAgent;
import org.teavm.model.ClassReader;
import org.teavm.model.MethodDescriptor;
import org.teavm.model.MethodReference;
import org.teavm.model.ValueType;
import org.teavm.model.emit.ProgramEmitter;

/** The code of {@link Initializers}: for each class of which the region has objects, the initializers of what it is. */
final class InitializersMethod {
    private static final MethodReference ALL = new MethodReference(Initializers.class.getName(), "all", ValueType.VOID);
    private static final MethodDescriptor INITIALIZER = new MethodDescriptor("<clinit>", ValueType.VOID);

    private InitializersMethod() {
    }

    /** Has the compiler know that a class may be initialized, as long as it asks which classes there are. */
    static void reach(DependencyAgent agent, String className) {
        agent.linkClass(className).initClass(null);
    }

    /** @param kept classes by their number, in which the runtime counts them too */
    static void submit(DependencyAgent agent, Set<String> kept) {
        ProgramEmitter code = ProgramEmitter.create(ALL.getDescriptor(), agent.getClassHierarchy());
        int number = 0;
        for (String className : kept) {
            List<String> initialized = new ArrayList<>();
            collect(agent, className, initialized, new HashSet<>());
            if (!initialized.isEmpty()) {
                code.when(code.invoke(Imports.class, "lives", boolean.class, code.constant(number)).isTrue())
                        .thenDo(() -> initialized.forEach(code::initClass));
            }
            number++;
        }
        code.exit();
        agent.submitMethod(ALL, code.getProgram());
    }

    /** What of a class, its superclasses and its interfaces has an initializer, those that a class needs first. */
    private static void collect(DependencyAgent agent, String className, List<String> initialized, Set<String> seen) {
        ClassReader cls = className == null || !seen.add(className) ? null : agent.getClassSource().get(className);
        if (cls == null) {
            return;
        }
        collect(agent, cls.getParent(), initialized, seen);
        cls.getInterfaces().forEach(name -> collect(agent, name, initialized, seen));
        if (cls.getMethod(INITIALIZER) != null) {
            initialized.add(className);
        }
    }
}
