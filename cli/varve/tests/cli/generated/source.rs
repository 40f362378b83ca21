//! A generated program as Java.

use super::model::{Class, Enum, Field, Model, Num, Type};
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The common base of all classes of a program.
const ENTITY: &str = "\
import java.util.*;

interface Node {
    int number();
    long weigh();
    String kind();
    void set(String field, String v, World w);
    void describe(StringBuilder out, World w);
}

abstract class Entity implements Node {
    int number;
    public int number() { return number; }
    public long weigh() { return 0; }
    public void set(String field, String v, World w) { throw new IllegalArgumentException(field); }
    public void describe(StringBuilder out, World w) { }
}

final class World {
    int done;
    final ArrayList<Node> all = new ArrayList<>();
    final HashMap<R, Integer> counts = new HashMap<>();

    Object object(String v) { return v.equals(\"-\") ? null : all.get(Integer.parseInt(v)); }

    /** The number of an object, which must be the one of that number. */
    String ref(Object o) {
        if (o == null) {
            return \"null\";
        }
        int number = ((Node) o).number();
        Node known = all.get(number);
        return \"#\" + number + (known == null || known == o ? \"\" : \" is another one\");
    }

    ArrayList<Node> list(ArrayList<Node> list, String v) {
        if (list == null) {
            list = new ArrayList<>();
        }
        switch (v.charAt(0)) {
            case '+': list.add((Node) object(v.substring(1))); break;
            case 'b': list.add(0, (Node) object(v.substring(1))); break;
            case 'r': list.remove(Integer.parseInt(v.substring(1))); break;
            default: list.clear();
        }
        return list;
    }

    String show(ArrayList<Node> list) {
        if (list == null) {
            return \"null\";
        }
        StringBuilder out = new StringBuilder();
        for (Node each : list) {
            out.append(out.length() == 0 ? \"\" : \",\").append(ref(each));
        }
        return \"[\" + out + \"]\";
    }

    HashMap<String, Node> map(HashMap<String, Node> map, String v) {
        if (map == null) {
            map = new HashMap<>();
        }
        int at = v.indexOf('=');
        if (at < 0) {
            map.remove(v);
        } else {
            map.put(v.substring(0, at), (Node) object(v.substring(at + 1)));
        }
        return map;
    }

    String show(HashMap<String, Node> map) {
        if (map == null) {
            return \"null\";
        }
        ArrayList<String> all = new ArrayList<>();
        for (Map.Entry<String, Node> each : map.entrySet()) {
            all.add(each.getKey() + \"=\" + ref(each.getValue()));
        }
        return sorted(all);
    }

    static String sorted(ArrayList<String> all) {
        Collections.sort(all);
        return \"[\" + String.join(\",\", all) + \"]\";
    }

    int[] ints(int[] ints, String v) {
        int at = v.indexOf('=');
        if (at >= 0) {
            ints[Integer.parseInt(v.substring(0, at))] = Integer.parseInt(v.substring(at + 1));
            return ints;
        }
        int[] fresh = new int[Integer.parseInt(v)];
        for (int i = 0; i < fresh.length; i++) {
            fresh[i] = i * 3 + fresh.length;
        }
        return fresh;
    }

    String show(int[] ints) { return ints == null ? \"null\" : Arrays.toString(ints).replace(\" \", \"\"); }

    void print() {
        StringBuilder out = new StringBuilder();
        for (Node each : all) {
            if (each != null) {
                out.append(each.number()).append(' ').append(each.kind()).append(' ').append(each.weigh());
                each.describe(out, this);
                out.append('\\n');
            }
        }
        ArrayList<String> counted = new ArrayList<>();
        for (Map.Entry<R, Integer> each : counts.entrySet()) {
            R same = new R(each.getKey().n(), each.getKey().text(), each.getKey().constant());
            counted.add(each.getKey() + \"=\" + counts.get(same));
        }
        Collections.sort(counted);
        System.out.print(out + \"counts \" + String.join(\" \", counted) + \"\\n\");
    }
}

final class Run {
    static void run(String[] a) {
        World w = varve.Varve.root(\"world\", World.class, World::new);
        int step = Integer.parseInt(a[1]);
        if (w.done < step) {
            if (a[2].equals(\"region\")) {
                varve.Varve.region(() -> work(w, step, a));
            } else {
                work(w, step, a);
            }
        }
        w.print();
    }

    static void work(World w, int step, String[] a) {
        for (int i = 3; i < a.length; i++) {
            String v = a[i].substring(2);
            switch (a[i].charAt(0)) {
                case 'n': {
                    Entity fresh = Make.make(v);
                    fresh.number = w.all.size();
                    w.all.add(fresh);
                    break;
                }
                case 'd': w.all.set(Integer.parseInt(v), null); break;
                case 'c': w.counts.merge(R.of(v), 1, Integer::sum); break;
                case 's': {
                    int first = v.indexOf(':');
                    int second = v.indexOf(':', first + 1);
                    w.all.get(Integer.parseInt(v.substring(0, first))).set(v.substring(first + 1, second), v.substring(second + 1), w);
                    break;
                }
                default:
            }
        }
        w.done = step;
    }
}
";

/// Writes the programs, each a package, and a class that calls the one that its first argument names.
pub fn write_all(folder: &Path, models: &[Model]) {
    let mut cases = String::new();
    for model in models {
        let package = &model.package;
        fs::create_dir_all(folder.join(package)).unwrap();
        let put = |name: &str, text: String| {
            let text = format!("package {package};\n\n{text}");
            fs::write(folder.join(package).join(format!("{name}.java")), text).unwrap();
        };
        put("Node", ENTITY.into());
        put(
            "Start",
            "public final class Start {\n    public static void run(String[] a) { Run.run(a); }\n}\n".to_string(),
        );
        put("R", record(model));
        let mut make = String::new();
        for (at, class) in model.classes.iter().enumerate().filter(|(_, c)| !c.gone) {
            put(&class.name, class_of(model, class));
            if model.makeable().contains(&at) {
                let _ = writeln!(
                    make,
                    "            case \"{0}\": return new {0}();",
                    class.name
                );
            }
        }
        put(
            "Make",
            format!(
                "final class Make {{\n    static Entity make(String name) {{\n        switch (name) {{\n{make}            default: throw new IllegalArgumentException(name);\n        }}\n    }}\n}}\n"
            ),
        );
        for one in &model.enums {
            put(&one.name, enum_of(model, one));
        }
        let _ = writeln!(
            cases,
            "            case \"{package}\": {package}.Start.run(a); break;"
        );
    }
    let main = format!(
        "public final class Main {{\n    public static void main(String[] a) {{\n        switch (a[0]) {{\n{cases}            default: throw new IllegalArgumentException(a[0]);\n        }}\n    }}\n}}\n"
    );
    fs::write(folder.join("Main.java"), main).unwrap();
}

fn renamed(old: Option<&String>, package: &str, indent: &str) -> String {
    let dot = if package.is_empty() { "" } else { "." };
    old.map_or_else(String::new, |old| {
        format!("{indent}@varve.Renamed(\"{package}{dot}{old}\")\n")
    })
}

fn enum_of(model: &Model, one: &Enum) -> String {
    let mut text = renamed(one.old_name.as_ref(), &model.package, "");
    let _ = writeln!(text, "enum {} {{", one.name);
    let mut constants = Vec::new();
    let mut bodies = String::from(";");
    for constant in &one.constants {
        let body = match constant.has_body {
            true => " {\n        @Override\n        int extra() { return 1; }\n    }",
            false => "",
        };
        if constant.has_body {
            bodies += &format!("{};", constant.name);
        }
        constants.push(format!(
            "{}    {}{body}",
            renamed(constant.old_name.as_ref(), "", "    "),
            constant.name
        ));
    }
    let _ = writeln!(text, "{};", constants.join(",\n"));
    let name = &one.name;
    let _ = write!(
        text,
        "
    int extra() {{ return 0; }}

    /** The name of a constant, which must be the one of that name, with the code that it has. */
    static String show({name} e) {{
        if (e == null) {{
            return \"null\";
        }}
        boolean same = {name}.valueOf(e.name()) == e && (e.extra() == 1) == \"{bodies}\".contains(\";\" + e.name() + \";\");
        return e.name() + (same ? \"\" : \" is another one\");
    }}

    static String show(java.util.HashSet<{name}> set) {{
        if (set == null) {{
            return \"null\";
        }}
        java.util.ArrayList<String> all = new java.util.ArrayList<>();
        for ({name} each : {name}.values()) {{
            if (set.contains(each)) {{
                all.add(show(each));
            }}
        }}
        return World.sorted(all) + (all.size() == set.size() ? \"\" : \" has others\");
    }}

    static String show(java.util.EnumMap<{name}, Integer> map) {{
        if (map == null) {{
            return \"null\";
        }}
        java.util.ArrayList<String> all = new java.util.ArrayList<>();
        for (java.util.Map.Entry<{name}, Integer> each : map.entrySet()) {{
            all.add(show(each.getKey()) + \"=\" + map.get(each.getKey()));
        }}
        return World.sorted(all);
    }}
}}
"
    );
    text
}

fn record(model: &Model) -> String {
    let name = &model.enums[0].name;
    format!(
        "record R(int n, String text, {name} constant) {{
    static R of(String v) {{
        String[] parts = v.split(\",\");
        return new R(Integer.parseInt(parts[0]), parts[1], {name}.valueOf(parts[2]));
    }}

    @Override
    public String toString() {{ return \"(\" + n + \" \" + text + \" \" + {name}.show(constant) + \")\"; }}
}}
"
    )
}

fn class_of(model: &Model, class: &Class) -> String {
    let parent = class
        .parent
        .map_or("Entity", |p| &model.classes[p].name[..]);
    let mut text = String::from("import java.util.*;\n\n");
    text += &renamed(class.old_name.as_ref(), &model.package, "");
    let is_abstract = if class.is_abstract { "abstract " } else { "" };
    let name = &class.name;
    let _ = writeln!(text, "{is_abstract}class {name} extends {parent} {{");
    let mut set = String::new();
    for field in &class.fields {
        text += &renamed(field.old_name.as_ref(), "", "    ");
        let (ty, initial) = (java_type(model, field.ty), initial(field));
        let _ = writeln!(text, "    {ty} {}{initial};", field.name);
        let _ = writeln!(
            set,
            "            case \"{name}.{0}\": {1} return;",
            field.name,
            setter(model, field)
        );
    }
    let mut fields: Vec<&Field> = class.fields.iter().collect();
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    let describe: String = fields
        .iter()
        .map(|f| {
            format!(
                "        out.append(\" {}=\").append({});\n",
                f.name,
                shown(model, f)
            )
        })
        .collect();
    let _ = write!(
        text,
        "
    @Override
    public long weigh() {{ return {} + super.weigh(); }}

    @Override
    public String kind() {{ return \"{name}\"; }}

    @Override
    public void set(String field, String v, World w) {{
        switch (field) {{
{set}            default: super.set(field, v, w);
        }}
    }}

    @Override
    public void describe(StringBuilder out, World w) {{
{describe}        super.describe(out, w);
    }}
}}
",
        class.weight
    );
    text
}

fn java_type(model: &Model, ty: Type) -> String {
    let named = |e: usize| &model.enums[e].name;
    match ty {
        Type::Bool => "boolean".into(),
        Type::Num(n) => format!("{n:?}").to_lowercase(),
        Type::Text => "String".into(),
        Type::Boxed => "Integer".into(),
        Type::Constant(e) => named(e).clone(),
        Type::Object(c) => model.classes[c].name.clone(),
        Type::Node => "Node".into(),
        Type::Any => "Object".into(),
        Type::List => "ArrayList<Node>".into(),
        Type::Map => "HashMap<String, Node>".into(),
        Type::Set(e) => format!("HashSet<{}>", named(e)),
        Type::EnumMap(e) => format!("EnumMap<{}, Integer>", named(e)),
        Type::Ints => "int[]".into(),
        Type::Record => "R".into(),
    }
}

fn initial(field: &Field) -> String {
    let n = field.initial;
    match field.ty {
        Type::Num(num) if n != 0 => match num {
            Num::Byte | Num::Short | Num::Char | Num::Int => {
                format!(" = ({}) {n}", format!("{num:?}").to_lowercase())
            }
            // The least number has no literal without its sign.
            Num::Long => format!(" = {n}L"),
            Num::Float => format!(" = {n} / 4f"),
            Num::Double => format!(" = {n}L / 4.0"),
        },
        Type::List => " = new ArrayList<>()".into(),
        Type::Map => " = new HashMap<>()".into(),
        _ => String::new(),
    }
}

fn setter(model: &Model, field: &Field) -> String {
    let f = &field.name;
    let named = |e: usize| &model.enums[e].name;
    match field.ty {
        Type::Bool => format!("{f} = Boolean.parseBoolean(v);"),
        Type::Num(num) => match num {
            Num::Byte => format!("{f} = Byte.parseByte(v);"),
            Num::Short => format!("{f} = Short.parseShort(v);"),
            Num::Char => format!("{f} = (char) Integer.parseInt(v);"),
            Num::Int => format!("{f} = Integer.parseInt(v);"),
            Num::Long => format!("{f} = Long.parseLong(v);"),
            Num::Float => format!("{f} = Integer.parseInt(v) / 4f;"),
            Num::Double => format!("{f} = Integer.parseInt(v) / 4.0;"),
        },
        Type::Text => format!("{f} = v.equals(\"-\") ? null : v.substring(1);"),
        Type::Boxed => format!("{f} = Integer.valueOf(Integer.parseInt(v));"),
        Type::Constant(e) => format!("{f} = {}.valueOf(v);", named(e)),
        Type::Object(_) | Type::Node | Type::Any => {
            format!("{f} = ({}) w.object(v);", java_type(model, field.ty))
        }
        Type::List => format!("{f} = w.list({f}, v);"),
        Type::Map => format!("{f} = w.map({f}, v);"),
        Type::Set(e) => format!(
            "if ({f} == null) {{ {f} = new HashSet<>(); }} if (v.charAt(0) == '+') {{ {f}.add({0}.valueOf(v.substring(1))); }} else {{ {f}.remove({0}.valueOf(v.substring(1))); }}",
            named(e)
        ),
        Type::EnumMap(e) => format!(
            "if ({f} == null) {{ {f} = new EnumMap<>({0}.class); }} {f}.put({0}.valueOf(v.substring(0, v.indexOf('='))), Integer.parseInt(v.substring(v.indexOf('=') + 1)));",
            named(e)
        ),
        Type::Ints => format!("{f} = w.ints({f}, v);"),
        Type::Record => format!("{f} = R.of(v);"),
    }
}

/// An expression for what a field is.
fn shown(model: &Model, field: &Field) -> String {
    let f = &field.name;
    let named = |e: usize| &model.enums[e].name;
    match field.ty {
        Type::Num(Num::Char) => format!("(int) {f}"),
        Type::Num(Num::Float | Num::Double) => format!("(long) ({f} * 4)"),
        Type::Constant(e) => format!("{}.show({f})", named(e)),
        Type::Object(_) | Type::Node | Type::Any => format!("w.ref({f})"),
        Type::List | Type::Map | Type::Ints => format!("w.show({f})"),
        Type::Set(e) | Type::EnumMap(e) => format!("{}.show({f})", named(e)),
        _ => f.clone(),
    }
}
