package varve.teavm;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.teavm.dependency.AbstractDependencyListener;
import org.teavm.dependency.DependencyAgent;
import org.teavm.dependency.DependencyNode;
import org.teavm.dependency.FieldDependency;
import org.teavm.dependency.MethodDependency;
import org.teavm.model.ClassReader;
import org.teavm.model.ElementModifier;
import org.teavm.model.FieldReader;
import org.teavm.model.Instruction;
import org.teavm.model.MethodReader;
import org.teavm.model.ProgramReader;
import org.teavm.model.TextLocation;
import org.teavm.model.ValueType;
import org.teavm.model.util.ProgramUtils;

/**
 * Tells the compiler what a durable region can bring into a program with durable roots. The compiler looks at the whole program and leaves out
 * what it does not use; it cannot see what another version of the program has stored.
 *
 * <ul>
 * <li>Fields that no code of this version uses stay, or durable objects would lose them.
 * <li>An object of any class that can be in a region may be in any field, array and root that its class fits: {@link #found} flows there. So
 * all methods stay that can be called on it, and no cast and no call is decided by what this version stores.
 * <li>Classes of the program, and those that the build names, are there even if this version makes no object of them.
 * </ul>
 *
 * Notes what only sources and class files say of classes, for {@link ClassesSection}.
 */
final class DurableClasses extends AbstractDependencyListener {
    private static final ValueType[] NUMBERS = {
        ValueType.BOOLEAN, ValueType.BYTE, ValueType.CHARACTER, ValueType.SHORT, ValueType.INTEGER, ValueType.LONG, ValueType.FLOAT,
        ValueType.DOUBLE
    };

    /** Classes that were reached before the program was known to have durable roots. */
    private final List<String> waiting = new ArrayList<>();

    /** Methods that give objects of a region. */
    private final List<MethodDependency> results = new ArrayList<>();

    /** Where closures stand in the source, by their class. */
    final Map<String, String> lines = new TreeMap<>();

    /** What classes without a name are known by, by the name with a number that they have instead. */
    final Map<String, String> names = new TreeMap<>();

    /** Classes whose objects can be in a region, with all that can be called on them. */
    final Set<String> kept = new TreeSet<>();

    /** Classes that the program has even if nothing uses them. */
    final Set<String> named = new TreeSet<>();

    private final ProgramClasses program;

    /** What a region can hold; null until the program is known to have durable roots. */
    private DependencyNode found;

    DurableClasses(ProgramClasses program) {
        this.program = program;
    }

    /** Whether the program has durable roots. */
    boolean found() {
        return found != null;
    }

    @Override
    public void methodReached(DependencyAgent agent, MethodDependency method) {
        if (!method.getReference().getClassName().equals(Imports.class.getName())) {
            return;
        }
        if (found == null && method.getReference().getName().equals("keep")) {
            found = agent.createNode();
            found.connect(found.getArrayItem());
            for (ValueType number : NUMBERS) {
                found.propagate(agent.getType(ValueType.arrayOf(number)));
            }
            waiting.forEach(name -> note(agent, name));
            waiting.clear();
            named.addAll(program.names(agent));
            named.forEach(agent::linkClass);
        }
        if (method.getReference().getName().equals("found")) {
            // It is called through Varve.find, which asks for the root of a name after it was set.
            results.add(method);
        }
        if (found != null) {
            results.forEach(result -> found.connect(result.getResult()));
            results.clear();
        }
    }

    @Override
    public void classReached(DependencyAgent agent, String className) {
        if (found != null) {
            note(agent, className);
        } else {
            waiting.add(className);
        }
    }

    @Override
    public void completing(DependencyAgent agent) {
        if (found != null) {
            InitializersMethod.submit(agent, kept);
        }
    }

    private void note(DependencyAgent agent, String className) {
        ClassReader cls = agent.getClassSource().get(className);
        if (cls == null) {
            return;
        }
        boolean survives = Surviving.canBeIn(cls, agent);
        for (FieldReader field : cls.getFields()) {
            if (!field.hasModifier(ElementModifier.STATIC)) {
                FieldDependency dependency = agent.linkField(field.getReference());
                if (survives && !(field.getType() instanceof ValueType.Primitive) && !Surviving.isVolatile(field)) {
                    found.connect(dependency.getValue());
                }
            }
        }
        if (survives) {
            InitializersMethod.reach(agent, className);
            ValueType type = ValueType.object(className);
            found.propagate(agent.getType(ValueType.arrayOf(type)));
            if (!cls.hasModifier(ElementModifier.ABSTRACT)) {
                kept.add(className);
                found.propagate(agent.getType(type));
            }
        }
        if (className.contains("$lambda$")) {
            String line = line(cls);
            if (line != null) {
                lines.put(className, line);
            }
        }
        String name = NamelessClasses.name(agent, cls);
        if (name != null) {
            names.put(className, name);
        }
    }

    /** The first line of a class's code. */
    private static String line(ClassReader cls) {
        for (MethodReader method : cls.getMethods()) {
            ProgramReader program = method.getProgram();
            if (program == null) {
                continue;
            }
            for (int i = 0; i < program.basicBlockCount(); i++) {
                for (Instruction instruction : ProgramUtils.copy(program).basicBlockAt(i)) {
                    TextLocation at = instruction.getLocation();
                    if (at != null && at.getFileName() != null && at.getLine() > 0) {
                        return at.getFileName().substring(at.getFileName().lastIndexOf('/') + 1) + ":" + at.getLine();
                    }
                }
            }
        }
        return null;
    }
}
