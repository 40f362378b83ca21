package varve.teavm;

import org.teavm.model.AccessLevel;
import org.teavm.model.ClassHolder;
import org.teavm.model.ClassHolderTransformer;
import org.teavm.model.ClassHolderTransformerContext;
import org.teavm.model.ElementModifier;
import org.teavm.model.FieldHolder;
import org.teavm.model.FieldReference;
import org.teavm.model.Instruction;
import org.teavm.model.MethodHolder;
import org.teavm.model.MethodReference;
import org.teavm.model.Program;
import org.teavm.model.ValueType;
import org.teavm.model.Variable;
import org.teavm.model.emit.ProgramEmitter;
import org.teavm.model.emit.ValueEmitter;
import org.teavm.model.instructions.GetFieldInstruction;
import org.teavm.model.instructions.InvocationType;
import org.teavm.model.instructions.InvokeInstruction;
import varve.Varve;

/**
 * Has each method of an {@code EnumMap} begin with the question whether the constants have the numbers by which it was filled. See
 * {@link EnumMaps}.
 */
final class EnumMapTransformer implements ClassHolderTransformer {
    private static final String MAP = "java.util.EnumMap";
    private static final ValueType OBJECT = ValueType.object("java.lang.Object");
    private static final ValueType OBJECTS = ValueType.arrayOf(OBJECT);
    private static final MethodReference SETTLE = new MethodReference(MAP, "varve$settle", ValueType.VOID);
    private static final MethodReference SETTLE_ANY = new MethodReference(EnumMaps.class, "settle", Object.class, void.class);

    @Override
    public void transformClass(ClassHolder cls, ClassHolderTransformerContext context) {
        if (cls.getName().equals(MAP)) {
            transformMap(cls, context);
        } else if (cls.getName().startsWith(MAP + "$")) {
            FieldHolder outer = cls.getField("this$0");
            if (outer != null && outer.getType().isObject(MAP)) {
                transformView(cls, outer.getReference());
            }
        } else if (cls.getName().equals(EnumMaps.class.getName())) {
            ProgramEmitter settle = ProgramEmitter.create(cls.getMethod(SETTLE_ANY.getDescriptor()), context.getHierarchy());
            ValueEmitter map = settle.var(1, OBJECT);
            settle.when(() -> map.instanceOf(ValueType.object(MAP)).isTrue())
                    .thenDo(() -> map.cast(ValueType.object(MAP)).invokeSpecial(SETTLE));
            settle.exit();
        }
    }

    private static void transformMap(ClassHolder cls, ClassHolderTransformerContext context) {
        for (MethodHolder method : cls.getMethods()) {
            if (method.getProgram() == null || method.hasModifier(ElementModifier.STATIC)) {
                continue;
            }
            boolean made = method.getName().equals("<init>") || method.getName().startsWith("init");
            boolean other = method.getName().equals("initFromOtherEnumMap") || method.getName().equals("putAll");
            if (other) {
                InvokeInstruction settle = new InvokeInstruction();
                settle.setType(InvocationType.SPECIAL);
                settle.setMethod(SETTLE_ANY);
                settle.setArguments(method.getProgram().variableAt(1));
                first(method.getProgram(), settle);
            }
            if (!made) {
                first(method.getProgram(), settle(method.getProgram().variableAt(0)));
            }
        }
        field(cls, "varve$constants", OBJECTS);
        field(cls, "varve$run", OBJECT);
        MethodHolder method = new MethodHolder(SETTLE.getDescriptor());
        method.setLevel(AccessLevel.PUBLIC);
        cls.addMethod(method);
        ProgramEmitter body = ProgramEmitter.create(method, context.getHierarchy());
        ValueEmitter map = body.var(0, cls);
        ValueEmitter run = body.invoke(EnumMaps.class, "run", Object.class);
        body.when(() -> map.getField("varve$run", OBJECT).isNotSame(run)).thenDo(() -> {
            ValueEmitter before = map.getField("varve$constants", OBJECTS);
            ValueEmitter data = map.getField("data", OBJECTS);
            ValueEmitter present = map.getField("provided", boolean[].class);
            ValueEmitter now = body.invoke(EnumMaps.class, "constants", Object[].class, map.getField("keyType", Class.class));
            ValueEmitter values = body.invoke(EnumMaps.class, "values", Object[].class, data, present, before, now);
            ValueEmitter keys = body.invoke(EnumMaps.class, "present", boolean[].class, present, before, now);
            // All of it or nothing is there after a crash.
            body.invoke(Varve.class, "begin");
            map.setField("data", values);
            map.setField("provided", keys);
            map.setField("varve$constants", now);
            map.setField("varve$run", run);
            body.invoke(Varve.class, "end");
        });
        body.exit();
    }

    /** The sets and collections that a map gives out. */
    private static void transformView(ClassHolder cls, FieldReference outer) {
        for (MethodHolder method : cls.getMethods()) {
            if (method.getProgram() == null || method.hasModifier(ElementModifier.STATIC) || method.getName().equals("<init>")) {
                continue;
            }
            Program program = method.getProgram();
            GetFieldInstruction map = new GetFieldInstruction();
            map.setField(outer);
            map.setFieldType(ValueType.object(MAP));
            map.setInstance(program.variableAt(0));
            map.setReceiver(program.createVariable());
            first(program, settle(map.getReceiver()));
            first(program, map);
        }
    }

    private static InvokeInstruction settle(Variable map) {
        InvokeInstruction settle = new InvokeInstruction();
        settle.setType(InvocationType.SPECIAL);
        settle.setMethod(SETTLE);
        settle.setInstance(map);
        return settle;
    }

    private static void first(Program program, Instruction instruction) {
        Instruction next = program.basicBlockAt(0).getFirstInstruction();
        instruction.setLocation(next.getLocation());
        next.insertPrevious(instruction);
    }

    private static void field(ClassHolder cls, String name, ValueType type) {
        FieldHolder field = new FieldHolder(name);
        field.setType(type);
        field.setLevel(AccessLevel.PUBLIC);
        cls.addField(field);
    }
}
