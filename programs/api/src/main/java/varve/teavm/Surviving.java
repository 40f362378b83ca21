package varve.teavm;

import java.util.Set;
import org.teavm.dependency.DependencyAgent;
import org.teavm.model.ClassReader;
import org.teavm.model.ElementModifier;
import org.teavm.model.FieldReader;

/**
 * Which classes' objects can be in a durable region: all but those that are something only while a program runs, and those that the compiler
 * made for lambdas of the program. The runtime refuses objects of any other class, so that what it lets into a region is whole in each later version.
 */
final class Surviving {
    /** Their objects belong to one run: to its files, threads and stack, or to a computation that is under way. */
    private static final String[] PACKAGES = {
        "java.io.", "java.lang.invoke.", "java.lang.reflect.", "java.net.", "java.nio.", "java.util.logging.",
        "java.util.stream.", "org.teavm.", "varve.host.", "varve.teavm."
    };
    private static final Set<String> CLASSES = Set.of("java.lang.Thread", "java.lang.ThreadLocal", "java.lang.ClassLoader",
            "java.lang.Runtime", "java.lang.System", "java.util.Timer", "java.util.TimerTask", "java.util.GenericEnumSet");
    /** What the compiler's library is made of beside the classes that programs name. */
    private static final String LIBRARY = "org.teavm.classlib.impl.";
    /** Character sets, each of which is one object. */
    private static final String CHARSETS = "java.nio.charset.";
    /** Values of those packages all the same. */
    private static final Set<String> VALUES = Set.of("java.io.File", "java.net.URI", "java.io.IOException", "java.io.UncheckedIOException",
            "java.io.FileNotFoundException", "java.io.EOFException");

    private Surviving() {
    }

    static boolean canBeIn(ClassReader cls, DependencyAgent agent) {
        // Lambdas of the library have the same numbers until the compiler is another one.
        boolean closure = cls.getName().contains("$lambda$") && !cls.getName().startsWith("java.");
        if (cls.hasModifier(ElementModifier.INTERFACE) || closure) {
            return false;
        }
        for (ClassReader c = cls; c != null; c = c.getParent() == null ? null : agent.getClassSource().get(c.getParent())) {
            if (CLASSES.contains(c.getName()) || isOfARun(c.getName())) {
                return false;
            }
        }
        return true;
    }

    private static boolean isOfARun(String name) {
        if (VALUES.contains(name) || name.startsWith(LIBRARY) || name.startsWith(CHARSETS)) {
            return false;
        }
        for (String prefix : PACKAGES) {
            if (name.startsWith(prefix)) {
                return true;
            }
        }
        return false;
    }

    /** Whether a field is the runtime's own: what it holds is never in a region. */
    static boolean isVolatile(FieldReader field) {
        return field.getOwnerName().equals("java.lang.Object") && field.getName().equals("monitor");
    }
}
