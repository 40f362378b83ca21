package varve.teavm;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.teavm.dependency.DependencyAgent;

/**
 * The classes that a program with durable roots has even if it makes no objects of them: those of the program's own folder of classes, and
 * those that the build names, such as the classes of a region that it is to open.
 */
final class ProgramClasses {
    /** A property of the compiler: names of classes, with commas between them. */
    static final String PROPERTY = "varve.keep";

    private final String named;

    ProgramClasses(String named) {
        this.named = named;
    }

    Set<String> names(DependencyAgent agent) {
        Set<String> names = new TreeSet<>();
        for (String name : named.split(",")) {
            if (!name.isBlank() && agent.getClassSource().get(name.trim()) != null) {
                names.add(name.trim());
            }
        }
        for (String name : own(agent)) {
            if (agent.getClassSource().get(name) != null) {
                names.add(name);
            }
        }
        return names;
    }

    /** Classes in the folder that the main class is in. A jar may hold all that a program's libraries have, so that its classes must be named. */
    private static List<String> own(DependencyAgent agent) {
        String main = agent.getEntryPoint();
        URL url = main == null ? null : agent.getClassLoader().getResource(main.replace('.', '/') + ".class");
        if (url == null || !url.getProtocol().equals("file")) {
            return List.of();
        }
        Path folder = Path.of(URI.create(url.toString()));
        for (int i = 0; i <= main.chars().filter(c -> c == '.').count(); i++) {
            folder = folder.getParent();
        }
        Path root = folder;
        try (Stream<Path> files = Files.walk(root)) {
            return files.map(file -> root.relativize(file).toString())
                    .filter(name -> name.endsWith(".class") && !name.endsWith("-info.class"))
                    .map(name -> name.substring(0, name.length() - ".class".length()).replace('/', '.'))
                    .collect(Collectors.toList());
        } catch (IOException e) {
            // Without its classes a region might be refused later, for no reason that anyone could see.
            throw new UncheckedIOException(e);
        }
    }
}
