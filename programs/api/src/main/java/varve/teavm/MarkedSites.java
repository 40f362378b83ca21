package varve.teavm;

import java.io.IOException;
import java.io.InputStream;
import java.util.HashSet;
import java.util.Set;
import org.teavm.asm.AnnotationVisitor;
import org.teavm.asm.ClassReader;
import org.teavm.asm.ClassVisitor;
import org.teavm.asm.Label;
import org.teavm.asm.MethodVisitor;
import org.teavm.asm.Opcodes;
import org.teavm.asm.TypePath;
import org.teavm.asm.TypeReference;
import org.teavm.parsing.resource.Resource;
import org.teavm.parsing.resource.ResourceProvider;

/**
 * Which allocations of a class have the annotation: the compiler's own form of programs has lost it, so class files are read again. That form
 * has its code in another order too; what both know is the line.
 */
final class MarkedSites {
    private static final String ANNOTATION = "Lvarve/PerfCritical;";

    /** A {@code new} of a type in a line. */
    private record Site(int line, String type) {
    }

    private final Set<Site> sites = new HashSet<>();

    private MarkedSites() {
    }

    static MarkedSites of(String className, ResourceProvider resources) {
        MarkedSites sites = new MarkedSites();
        Resource resource = resources.getResource(className.replace('.', '/') + ".class");
        if (resource == null) {
            return sites;
        }
        try (InputStream in = resource.open()) {
            new ClassReader(in).accept(sites.reader(), ClassReader.SKIP_FRAMES);
        } catch (IOException e) {
            throw new IllegalStateException("cannot read " + className + " for its annotations", e);
        }
        return sites;
    }

    /** Whether a {@code new} of a class in a line is marked. */
    boolean contains(int line, String className) {
        return sites.contains(new Site(line, className.replace('.', '/')));
    }

    private ClassVisitor reader() {
        return new ClassVisitor(Opcodes.ASM9) {
            @Override
            public MethodVisitor visitMethod(int access, String name, String descriptor, String signature, String[] exceptions) {
                return methodReader();
            }
        };
    }

    private MethodVisitor methodReader() {
        return new MethodVisitor(Opcodes.ASM9) {
            private int line;
            private String allocated;

            @Override
            public void visitLineNumber(int number, Label start) {
                line = number;
            }

            @Override
            public void visitTypeInsn(int opcode, String type) {
                allocated = opcode == Opcodes.NEW ? type : null;
            }

            /** Comes right after the instruction. */
            @Override
            public AnnotationVisitor visitInsnAnnotation(int typeRef, TypePath path, String annotation, boolean visible) {
                boolean isNew = new TypeReference(typeRef).getSort() == TypeReference.NEW;
                if (isNew && path == null && annotation.equals(ANNOTATION) && allocated != null) {
                    if (line == 0) {
                        throw new IllegalStateException("@PerfCritical at a new " + allocated
                                + ": its class file has no line numbers; compile it with -g:lines, or use Varve.critical");
                    }
                    sites.add(new Site(line, allocated));
                }
                return null;
            }
        };
    }
}
