package varve.jvm;

import java.util.List;
import net.sourceforge.pmd.PMDConfiguration;
import net.sourceforge.pmd.PmdAnalysis;
import net.sourceforge.pmd.lang.LanguageRegistry;
import net.sourceforge.pmd.lang.document.FileId;
import net.sourceforge.pmd.lang.rule.RuleSet;
import net.sourceforge.pmd.lang.rule.RuleSetLoader;
import net.sourceforge.pmd.reporting.Report;
import net.sourceforge.pmd.reporting.RuleViolation;

/** Looks for flaws in Java by PMD and its rules for design and mistakes: an operation is a class of about eighty lines. */
final class Analysing implements Work {
    /** Read once by each thread, as a service would: reading them allocates 1.1 GB, and a class some 25 MB. */
    private final ThreadLocal<List<RuleSet>> rules = ThreadLocal.withInitial(() -> {
        PMDConfiguration settings = new PMDConfiguration();
        return List.of(RuleSetLoader.fromPmdConfig(settings).loadFromResource("rulesets/java/quickstart.xml"));
    });

    @Override
    public long run(int thread, Random random, int size) {
        PMDConfiguration settings = new PMDConfiguration();
        settings.setThreads(0);
        settings.setIgnoreIncrementalAnalysis(true);
        settings.setDefaultLanguageVersion(LanguageRegistry.PMD.getLanguageById("java").getVersion("17"));
        try (PmdAnalysis analysis = PmdAnalysis.create(settings)) {
            analysis.addRuleSets(rules.get());
            for (int number = 0; number < size; number++) {
                analysis.files().addSourceFile(FileId.fromPathLikeString("generated/" + Sources.name(number) + ".java"), Sources.of(random, number));
            }
            Report report = analysis.performAnalysisAndCollectReport();
            if (!report.getProcessingErrors().isEmpty()) {
                throw new IllegalStateException(report.getProcessingErrors().get(0).getMsg());
            }
            long digest = 0;
            for (RuleViolation flaw : report.getViolations()) {
                digest += Random.digest(flaw.getRule().getName()) ^ Random.mix(flaw.getBeginLine());
            }
            return digest;
        }
    }
}
