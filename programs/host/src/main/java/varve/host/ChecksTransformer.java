package varve.host;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.teavm.model.ClassHolder;
import org.teavm.model.ClassHolderTransformer;
import org.teavm.model.ClassHolderTransformerContext;
import org.teavm.model.Instruction;
import org.teavm.model.MethodHolder;
import org.teavm.model.MethodReference;
import org.teavm.model.Program;
import org.teavm.model.ValueType;
import org.teavm.model.Variable;
import org.teavm.model.instructions.BinaryInstruction;
import org.teavm.model.instructions.ConstructArrayInstruction;
import org.teavm.model.instructions.ConstructMultiArrayInstruction;
import org.teavm.model.instructions.IntegerConstantInstruction;
import org.teavm.model.instructions.InvocationType;
import org.teavm.model.instructions.InvokeInstruction;
import org.teavm.model.instructions.LongConstantInstruction;
import org.teavm.model.util.DefinitionExtractor;

/** Puts {@link Checks} in the place of whole-number divisions and before new arrays; not where a constant makes them superfluous. */
final class ChecksTransformer implements ClassHolderTransformer {
    private static final String CHECKS = "varve.host.Checks";
    private static final MethodReference ARRAY_SIZE = new MethodReference(CHECKS, "arraySize", ValueType.INTEGER,
            ValueType.INTEGER);

    @Override
    public void transformClass(ClassHolder cls, ClassHolderTransformerContext context) {
        // The compiler's own runtime allocates memory, and so must not.
        if (cls.getName().startsWith("org.teavm.") || cls.getName().equals(CHECKS)) {
            return;
        }
        for (MethodHolder method : cls.getMethods()) {
            if (method.getProgram() != null) {
                transform(method.getProgram());
            }
        }
    }

    private static void transform(Program program) {
        Set<Variable> harmless = positiveConstants(program);
        for (int i = 0; i < program.basicBlockCount(); i++) {
            List<Instruction> instructions = new ArrayList<>();
            program.basicBlockAt(i).forEach(instructions::add);
            for (Instruction instruction : instructions) {
                if (instruction instanceof BinaryInstruction binary) {
                    division(binary, harmless);
                } else if (instruction instanceof ConstructArrayInstruction array) {
                    array.setSize(size(program, array, array.getSize(), harmless));
                } else if (instruction instanceof ConstructMultiArrayInstruction array) {
                    array.getDimensions().replaceAll(size -> size(program, array, size, harmless));
                }
            }
        }
    }

    private static void division(BinaryInstruction binary, Set<Variable> harmless) {
        String name = switch (binary.getOperation()) {
            case DIVIDE -> "divide";
            case MODULO -> "remainder";
            default -> null;
        };
        ValueType type = switch (binary.getOperandType()) {
            case INT -> ValueType.INTEGER;
            case LONG -> ValueType.LONG;
            default -> null;
        };
        if (name != null && type != null && !harmless.contains(binary.getSecondOperand())) {
            InvokeInstruction call = call(new MethodReference(CHECKS, name, type, type, type), binary,
                    binary.getFirstOperand(), binary.getSecondOperand());
            call.setReceiver(binary.getReceiver());
            binary.replace(call);
        }
    }

    /** The size that a check before an instruction lets through. */
    private static Variable size(Program program, Instruction before, Variable size, Set<Variable> harmless) {
        if (harmless.contains(size)) {
            return size;
        }
        InvokeInstruction call = call(ARRAY_SIZE, before, size);
        call.setReceiver(program.createVariable());
        before.insertPrevious(call);
        return call.getReceiver();
    }

    private static InvokeInstruction call(MethodReference method, Instruction at, Variable... arguments) {
        InvokeInstruction call = new InvokeInstruction();
        call.setType(InvocationType.SPECIAL);
        call.setMethod(method);
        call.setArguments(arguments);
        call.setLocation(at.getLocation());
        return call;
    }

    /** Variables that get a value once, and that a constant above zero. */
    private static Set<Variable> positiveConstants(Program program) {
        Set<Variable> constants = new HashSet<>();
        Set<Variable> others = new HashSet<>();
        DefinitionExtractor definitions = new DefinitionExtractor();
        for (int i = 0; i < program.basicBlockCount(); i++) {
            for (Instruction instruction : program.basicBlockAt(i)) {
                boolean positive = instruction instanceof IntegerConstantInstruction c && c.getConstant() > 0
                        || instruction instanceof LongConstantInstruction l && l.getConstant() > 0;
                instruction.acceptVisitor(definitions);
                for (Variable defined : definitions.getDefinedVariables()) {
                    if (!positive || !constants.add(defined)) {
                        others.add(defined);
                    }
                }
            }
        }
        constants.removeAll(others);
        return constants;
    }
}
