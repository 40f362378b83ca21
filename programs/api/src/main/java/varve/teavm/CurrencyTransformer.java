package varve.teavm;

import org.teavm.model.AccessLevel;
import org.teavm.model.ClassHolder;
import org.teavm.model.ClassHolderTransformer;
import org.teavm.model.ClassHolderTransformerContext;
import org.teavm.model.MethodDescriptor;
import org.teavm.model.MethodHolder;
import org.teavm.model.ValueType;
import org.teavm.model.emit.ProgramEmitter;
import org.teavm.model.emit.ValueEmitter;

/**
 * Has currencies be equal if their codes are. The compiler's library has one object for each in a map that it fills in each run, and no
 * {@code equals}: a currency of a region would be no key of any map in the next run.
 */
final class CurrencyTransformer implements ClassHolderTransformer {
    private static final ValueType CURRENCY = ValueType.object("java.util.Currency");

    @Override
    public void transformClass(ClassHolder cls, ClassHolderTransformerContext context) {
        if (!cls.getName().equals("java.util.Currency")) {
            return;
        }
        MethodHolder hash = add(cls, new MethodDescriptor("hashCode", int.class));
        ProgramEmitter code = ProgramEmitter.create(hash, context.getHierarchy());
        code(code.var(0, cls)).invokeVirtual("hashCode", int.class).returnValue();

        MethodHolder equals = add(cls, new MethodDescriptor("equals", Object.class, boolean.class));
        ProgramEmitter body = ProgramEmitter.create(equals, context.getHierarchy());
        ValueEmitter other = body.var(1, ValueType.object("java.lang.Object"));
        body.when(() -> other.instanceOf(CURRENCY).isTrue())
                .thenDo(() -> code(body.var(0, cls)).invokeVirtual("equals", boolean.class, code(other.cast(CURRENCY))
                        .cast(ValueType.object("java.lang.Object"))).returnValue());
        body.constant(0).returnValue();
    }

    private static ValueEmitter code(ValueEmitter currency) {
        return currency.invokeVirtual("getCurrencyCode", String.class);
    }

    private static MethodHolder add(ClassHolder cls, MethodDescriptor descriptor) {
        MethodHolder method = new MethodHolder(descriptor);
        method.setLevel(AccessLevel.PUBLIC);
        cls.addMethod(method);
        return method;
    }
}
