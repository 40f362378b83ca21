package varve.teavm;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.teavm.backend.wasm.generate.WasmGCNameProvider;
import org.teavm.backend.wasm.intrinsics.WasmGCCodeGenContext;
import org.teavm.backend.wasm.model.WasmCustomSection;
import org.teavm.model.AnnotationContainerReader;
import org.teavm.model.AnnotationReader;
import org.teavm.model.AnnotationValue;
import org.teavm.model.ClassReader;
import org.teavm.model.ElementModifier;
import org.teavm.model.FieldReader;
import org.teavm.model.ValueType;

/**
 * The custom section {@code varve.classes} of a module: what durable objects are known by. Lines of text, their words between tabulators.
 *
 * <pre>
 * class  TYPE  FIELD...       fields as the class declares them, in the order of the struct; {@code FIELD:char} for characters
 * was    TYPE  OLD...         what a class was called before
 * field  TYPE  FIELD OLD...   what a field was called before
 * line   TYPE  FILE:LINE      where a closure stands
 * name   TYPE  NAME           what a class is known by that has a number for a name
 * final  TYPE  FIELD...       static fields that are never assigned again
 * keeps  TYPE                 objects of the class can be in a region: all is there that can be called on them
 * </pre>
 *
 * TYPE is the class as the module names its type.
 */
final class ClassesSection {
    private static final String ANNOTATION = "varve.Renamed";

    private final StringBuilder text = new StringBuilder();

    private ClassesSection() {
    }

    /** Adds the section to the module that is being made. */
    static void add(WasmGCCodeGenContext context, DurableClasses noted) {
        ClassesSection section = new ClassesSection();
        List<String> names = new ArrayList<>(context.classes().getClassNames());
        names.sort(null);
        for (String name : names) {
            section.describe(context.classes().get(name));
        }
        section.lines("line", noted.lines);
        section.lines("name", noted.names);
        // Types of the module, even if this version has no code that names them.
        noted.named.stream().filter(names::contains).forEach(name -> context.classInfoProvider().getClassInfo(ValueType.object(name)));
        for (String name : noted.kept) {
            context.classInfoProvider().getClassInfo(ValueType.object(name));
            section.line("keeps", WasmGCNameProvider.sanitize(name), List.of());
        }
        byte[] bytes = section.text.toString().getBytes(StandardCharsets.UTF_8);
        context.module().add(new WasmCustomSection("varve.classes", bytes));
    }

    private void describe(ClassReader cls) {
        String type = WasmGCNameProvider.sanitize(cls.getName());
        List<String> fields = new ArrayList<>();
        for (FieldReader field : cls.getFields()) {
            boolean own = field.hasModifier(ElementModifier.STATIC)
                    || (cls.getName().equals("java.lang.Object") && field.getName().equals("monitor"));
            if (!own) {
                fields.add(field.getName() + (field.getType() == ValueType.CHARACTER ? ":char" : ""));
            }
        }
        if (!fields.isEmpty()) {
            line("class", type, fields);
        }
        List<String> constants = new ArrayList<>();
        for (FieldReader field : cls.getFields()) {
            if (field.hasModifier(ElementModifier.STATIC) && field.hasModifier(ElementModifier.FINAL)
                    && !(field.getType() instanceof ValueType.Primitive)) {
                constants.add(WasmGCNameProvider.sanitize(field.getName()));
            }
        }
        if (!constants.isEmpty()) {
            line("final", type, constants);
        }
        List<String> old = old(cls.getAnnotations());
        if (!old.isEmpty()) {
            line("was", type, old.stream().map(WasmGCNameProvider::sanitize).toList());
        }
        for (FieldReader field : cls.getFields()) {
            List<String> words = new ArrayList<>(old(field.getAnnotations()));
            if (!words.isEmpty()) {
                words.add(0, field.getName());
                line("field", type, words);
            }
        }
    }

    private static List<String> old(AnnotationContainerReader annotations) {
        AnnotationReader renamed = annotations.get(ANNOTATION);
        List<String> old = new ArrayList<>();
        if (renamed != null) {
            for (AnnotationValue name : renamed.getValue("value").getList()) {
                old.add(name.getString());
            }
        }
        return old;
    }

    private void lines(String what, Map<String, String> of) {
        of.forEach((cls, word) -> line(what, WasmGCNameProvider.sanitize(cls), List.of(word)));
    }

    private void line(String what, String type, List<String> words) {
        text.append(what).append('\t').append(type);
        words.forEach(word -> text.append('\t').append(word));
        text.append('\n');
    }
}
