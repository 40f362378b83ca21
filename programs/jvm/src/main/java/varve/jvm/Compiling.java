package varve.jvm;

import java.util.HashMap;
import java.util.Map;
import org.eclipse.jdt.core.compiler.CategorizedProblem;
import org.eclipse.jdt.core.compiler.CharOperation;
import org.eclipse.jdt.internal.compiler.ClassFile;
import org.eclipse.jdt.internal.compiler.Compiler;
import org.eclipse.jdt.internal.compiler.DefaultErrorHandlingPolicies;
import org.eclipse.jdt.internal.compiler.ICompilerRequestor;
import org.eclipse.jdt.internal.compiler.batch.CompilationUnit;
import org.eclipse.jdt.internal.compiler.batch.FileSystem;
import org.eclipse.jdt.internal.compiler.env.ICompilationUnit;
import org.eclipse.jdt.internal.compiler.impl.CompilerOptions;
import org.eclipse.jdt.internal.compiler.problem.DefaultProblemFactory;
import org.eclipse.jdt.internal.compiler.util.Util;
import java.util.ArrayList;
import java.util.List;

/** Compiles Java by the compiler of Eclipse: an operation is a class of about eighty lines. */
final class Compiling implements Work {
    /** Classes that are compiled together. */
    private static final int TOGETHER = 10;

    @Override
    public long run(int thread, Random random, int size) {
        Map<String, String> settings = new HashMap<>();
        for (String key : new String[] {CompilerOptions.OPTION_Source, CompilerOptions.OPTION_TargetPlatform, CompilerOptions.OPTION_Compliance}) {
            settings.put(key, "17");
        }
        long[] digest = {0};
        ICompilerRequestor taker = result -> {
            if (result.hasErrors()) {
                CategorizedProblem first = result.getErrors()[0];
                throw new IllegalStateException("a generated class does not compile: " + first);
            }
            for (ClassFile file : result.getClassFiles()) {
                byte[] bytes = file.getBytes();
                digest[0] += Random.digest(bytes, bytes.length);
            }
        };
        List<FileSystem.Classpath> places = new ArrayList<>();
        Util.collectRunningVMBootclasspath(places);
        FileSystem known = new Names(places.toArray(FileSystem.Classpath[]::new));
        try {
            for (int number = 0; number < size; number += TOGETHER) {
                ICompilationUnit[] units = new ICompilationUnit[Math.min(TOGETHER, size - number)];
                for (int i = 0; i < units.length; i++) {
                    String text = Sources.of(random, number + i);
                    units[i] = new CompilationUnit(text.toCharArray(), "generated/" + Sources.name(number + i) + ".java", null);
                }
                Compiler compiler = new Compiler(known, DefaultErrorHandlingPolicies.exitAfterAllProblems(), new CompilerOptions(settings), taker,
                        new DefaultProblemFactory());
                // What runs beside a thread that is counted would be another one.
                compiler.useSingleThread = true;
                compiler.compile(units);
            }
        } finally {
            known.cleanup();
        }
        return digest[0];
    }

    /** The platform's classes. */
    private static final class Names extends FileSystem {
        Names(Classpath[] places) {
            super(places, new String[0], false);
        }
    }
}
