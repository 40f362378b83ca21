package varve.teavm;

import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.zip.CRC32;
import org.teavm.dependency.DependencyAgent;
import org.teavm.model.BasicBlock;
import org.teavm.model.ClassReader;
import org.teavm.model.FieldReader;
import org.teavm.model.Instruction;
import org.teavm.model.MethodReader;
import org.teavm.model.Program;
import org.teavm.model.Variable;
import org.teavm.model.instructions.AssignInstruction;
import org.teavm.model.instructions.InvokeInstruction;
import org.teavm.model.instructions.StringConstantInstruction;
import org.teavm.model.text.ListingBuilder;
import org.teavm.model.util.ProgramUtils;

/**
 * Names for classes without a name, which compilers number in the order of the source: in another version of the program the number may be
 * that of another class. A constant's class is known by the constant, {@code State.DONE}; any other by what it is and does,
 * {@code Main$Comparator~3fa9c21b}.
 */
final class NamelessClasses {
    private NamelessClasses() {
    }

    /** What a class is known by; null if it has a name, or if its number is part of the library that the compiler brings along. */
    static String name(DependencyAgent agent, ClassReader cls) {
        String name = cls.getName();
        String owner = name.substring(0, Math.max(name.lastIndexOf('$'), 0));
        boolean numbered = !owner.isEmpty() && name.substring(owner.length() + 1).chars().allMatch(c -> c >= '0' && c <= '9');
        if (!numbered || name.startsWith("java.") || name.startsWith("org.teavm.")) {
            return null;
        }
        ClassReader source = agent.getUnprocessedClassSource().get(name);
        ClassReader parent = cls.getParent() == null ? null : agent.getUnprocessedClassSource().get(cls.getParent());
        if (source == null) {
            return null;
        }
        if (parent != null && "java.lang.Enum".equals(parent.getParent())) {
            String constant = constant(parent, name);
            return constant == null ? null : parent.getName() + "." + constant;
        }
        String of = source.getInterfaces().isEmpty() ? source.getParent() : source.getInterfaces().iterator().next();
        String simple = of.substring(Math.max(of.lastIndexOf('.'), of.lastIndexOf('$')) + 1);
        return owner + "$" + simple + "~" + digest(source);
    }

    /** The name of the constant that an enumeration makes of a class: the first argument of its constructor. */
    private static String constant(ClassReader enumeration, String className) {
        for (MethodReader method : enumeration.getMethods()) {
            if (!method.getName().equals("<clinit>") || method.getProgram() == null) {
                continue;
            }
            Map<Variable, String> texts = new HashMap<>();
            for (BasicBlock block : ProgramUtils.copy(method.getProgram()).getBasicBlocks()) {
                for (Instruction instruction : block) {
                    if (instruction instanceof StringConstantInstruction text) {
                        texts.put(text.getReceiver(), text.getConstant());
                    } else if (instruction instanceof AssignInstruction assign) {
                        texts.put(assign.getReceiver(), texts.get(assign.getAssignee()));
                    } else if (instruction instanceof InvokeInstruction call && call.getMethod().getClassName().equals(className)
                            && call.getMethod().getName().equals("<init>") && !call.getArguments().isEmpty()) {
                        return texts.get(call.getArguments().get(0));
                    }
                }
            }
        }
        return null;
    }

    /** A number for all that a class is and does, wherever it stands in the source. */
    private static String digest(ClassReader cls) {
        StringBuilder text = new StringBuilder(cls.getParent());
        cls.getInterfaces().forEach(name -> text.append(' ').append(name));
        for (FieldReader field : cls.getFields()) {
            text.append('\n').append(field.getName()).append(field.getType());
        }
        for (MethodReader method : cls.getMethods()) {
            text.append('\n').append(method.getDescriptor());
            if (method.getProgram() != null) {
                Program program = ProgramUtils.copy(method.getProgram());
                for (BasicBlock block : program.getBasicBlocks()) {
                    block.forEach(instruction -> instruction.setLocation(null));
                }
                text.append(new ListingBuilder().buildListing(program, " "));
            }
        }
        CRC32 sum = new CRC32();
        // Its own number is not what it does.
        sum.update(text.toString().replace(cls.getName(), "this").getBytes(StandardCharsets.UTF_8));
        return String.format("%08x", sum.getValue());
    }
}
