package varve.jvm;

import java.io.ByteArrayOutputStream;
import java.io.File;
import java.io.StringReader;
import javax.xml.transform.TransformerFactory;
import javax.xml.transform.sax.SAXResult;
import javax.xml.transform.stream.StreamSource;
import org.apache.fop.apps.Fop;
import org.apache.fop.apps.FopFactory;
import org.apache.fop.apps.FOUserAgent;
import org.apache.xalan.processor.TransformerFactoryImpl;

/** Lays XML out as PDF: an operation is a document of about two pages with a table. */
final class Printing implements Work {
    private static final int PARAGRAPHS = 8;
    private static final int ROWS = 30;

    private final FopFactory factory = FopFactory.newInstance(new File(".").toURI());
    private final TransformerFactory transformers = new TransformerFactoryImpl();

    @Override
    public long run(int thread, Random random, int size) throws Exception {
        long digest = 0;
        for (int number = 0; number < size; number++) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            FOUserAgent agent = factory.newFOUserAgent();
            Fop fop = factory.newFop("application/pdf", agent, out);
            transformers.newTransformer().transform(new StreamSource(new StringReader(document(random))), new SAXResult(fop.getDefaultHandler()));
            // The date is in the file; how many pages came of it is not the date's.
            digest += Random.mix(fop.getResults().getPageCount() * 1000L + number);
        }
        return digest;
    }

    private static String document(Random random) {
        StringBuilder text = new StringBuilder("<fo:root xmlns:fo=\"http://www.w3.org/1999/XSL/Format\"><fo:layout-master-set>"
                + "<fo:simple-page-master master-name=\"page\" page-width=\"210mm\" page-height=\"297mm\" margin=\"20mm\"><fo:region-body/>"
                + "</fo:simple-page-master></fo:layout-master-set><fo:page-sequence master-reference=\"page\"><fo:flow flow-name=\"xsl-region-body\">");
        for (int i = 0; i < PARAGRAPHS; i++) {
            text.append("<fo:block space-after=\"6pt\" text-align=\"justify\">").append(Text.sentence(random, 60 + random.below(60))).append("</fo:block>");
        }
        text.append("<fo:table table-layout=\"fixed\" width=\"100%\"><fo:table-body>");
        for (int row = 0; row < ROWS; row++) {
            text.append("<fo:table-row>");
            for (int column = 0; column < 3; column++) {
                text.append("<fo:table-cell><fo:block>").append(Text.sentence(random, 3)).append("</fo:block></fo:table-cell>");
            }
            text.append("</fo:table-row>");
        }
        return text.append("</fo:table-body></fo:table></fo:flow></fo:page-sequence></fo:root>").toString();
    }
}
