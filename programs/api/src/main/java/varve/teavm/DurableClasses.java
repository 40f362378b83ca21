package varve.teavm;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.teavm.dependency.AbstractDependencyListener;
import org.teavm.dependency.DependencyAgent;
import org.teavm.dependency.MethodDependency;
import org.teavm.model.ClassReader;
import org.teavm.model.ElementModifier;
import org.teavm.model.FieldReader;
import org.teavm.model.Instruction;
import org.teavm.model.MethodReader;
import org.teavm.model.ProgramReader;
import org.teavm.model.TextLocation;
import org.teavm.model.util.ProgramUtils;

/**
 * Has objects of programs with durable roots look as their classes' sources say. The compiler leaves out fields that no code of the program
 * uses; a durable object would lose them as soon as another version of the program does not use them. Notes what only sources and class
 * files say of classes, for {@link ClassesSection}.
 */
final class DurableClasses extends AbstractDependencyListener {
    /** Classes that were reached before the program was known to have durable roots. */
    private final List<String> waiting = new ArrayList<>();

    /** Where closures stand in the source, by their class. */
    final Map<String, String> lines = new TreeMap<>();

    /** What classes without a name are known by, by the name with a number that they have instead. */
    final Map<String, String> names = new TreeMap<>();

    private boolean durable;

    /** Whether the program has durable roots. */
    boolean found() {
        return durable;
    }

    @Override
    public void methodReached(DependencyAgent agent, MethodDependency method) {
        if (!durable && method.getReference().getClassName().equals(Imports.class.getName())
                && method.getReference().getName().equals("keep")) {
            durable = true;
            waiting.forEach(name -> note(agent, name));
            waiting.clear();
        }
    }

    @Override
    public void classReached(DependencyAgent agent, String className) {
        if (durable) {
            note(agent, className);
        } else {
            waiting.add(className);
        }
    }

    private void note(DependencyAgent agent, String className) {
        ClassReader cls = agent.getClassSource().get(className);
        if (cls == null) {
            return;
        }
        for (FieldReader field : cls.getFields()) {
            if (!field.hasModifier(ElementModifier.STATIC)) {
                agent.linkField(field.getReference());
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
