package varve.teavm;

import java.util.ArrayList;
import java.util.List;
import org.teavm.model.ClassHolder;
import org.teavm.model.ClassHolderTransformer;
import org.teavm.model.ClassHolderTransformerContext;
import org.teavm.model.Instruction;
import org.teavm.model.MethodHolder;
import org.teavm.model.MethodReference;
import org.teavm.model.Program;
import org.teavm.model.ValueType;
import org.teavm.model.Variable;
import org.teavm.model.instructions.AssignInstruction;
import org.teavm.model.instructions.ConstructInstruction;
import org.teavm.model.instructions.InvocationType;
import org.teavm.model.instructions.InvokeInstruction;
import org.teavm.parsing.resource.ResourceProvider;

/**
 * Marks the objects of allocations with {@link varve.PerfCritical} as soon as they are there, before their constructors run; and has calls of
 * {@link varve.Varve#critical} mark where they stand, so that whoever compiles the module sees object and mark together.
 */
final class MarkTransformer implements ClassHolderTransformer {
    private static final MethodReference MARK = new MethodReference(Imports.class.getName(), "mark",
            ValueType.object("java.lang.Object"), ValueType.VOID);

    private static final MethodReference CRITICAL = new MethodReference("varve.Varve", "critical",
            ValueType.object("java.lang.Object"), ValueType.object("java.lang.Object"));

    private final ResourceProvider resources;

    MarkTransformer(ResourceProvider resources) {
        this.resources = resources;
    }

    @Override
    public void transformClass(ClassHolder cls, ClassHolderTransformerContext context) {
        if (cls.getName().startsWith("java.") || cls.getName().startsWith("org.teavm.")) {
            return;
        }
        MarkedSites sites = MarkedSites.of(cls.getName(), resources);
        for (MethodHolder method : cls.getMethods()) {
            if (method.getProgram() != null) {
                transform(method.getProgram(), sites);
            }
        }
    }

    private static void transform(Program program, MarkedSites sites) {
        for (int i = 0; i < program.basicBlockCount(); i++) {
            List<Instruction> instructions = new ArrayList<>();
            program.basicBlockAt(i).forEach(instructions::add);
            for (Instruction instruction : instructions) {
                if (instruction instanceof ConstructInstruction construct && construct.getLocation() != null
                        && sites.contains(construct.getLocation().getLine(), construct.getType())) {
                    construct.insertNext(mark(construct.getReceiver(), construct));
                } else if (instruction instanceof InvokeInstruction call && call.getMethod().equals(CRITICAL)) {
                    Variable object = call.getArguments().get(0);
                    call.insertPrevious(mark(object, call));
                    if (call.getReceiver() == null) {
                        call.delete();
                        continue;
                    }
                    AssignInstruction assign = new AssignInstruction();
                    assign.setAssignee(object);
                    assign.setReceiver(call.getReceiver());
                    assign.setLocation(call.getLocation());
                    call.replace(assign);
                }
            }
        }
    }

    private static InvokeInstruction mark(Variable object, Instruction at) {
        InvokeInstruction mark = new InvokeInstruction();
        mark.setType(InvocationType.SPECIAL);
        mark.setMethod(MARK);
        mark.setArguments(object);
        mark.setLocation(at.getLocation());
        return mark;
    }
}
