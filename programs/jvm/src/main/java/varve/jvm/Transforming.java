package varve.jvm;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import javax.xml.transform.Templates;
import javax.xml.transform.TransformerException;
import javax.xml.transform.stream.StreamResult;
import javax.xml.transform.stream.StreamSource;
import org.apache.xalan.processor.TransformerFactoryImpl;

/** Transforms XML by a style sheet, interpreted: an operation is a document with 25 entries, which are sorted and grouped. */
final class Transforming implements Work {
    private static final String SHEET = """
            <xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
              <xsl:output method="html" indent="no"/>
              <xsl:key name="by-kind" match="entry" use="@kind"/>
              <xsl:template match="/catalogue">
                <html><body>
                  <xsl:for-each select="entry[generate-id() = generate-id(key('by-kind', @kind)[1])]">
                    <xsl:sort select="@kind"/>
                    <h2><xsl:value-of select="@kind"/> (<xsl:value-of select="count(key('by-kind', @kind))"/>)</h2>
                    <table>
                      <xsl:apply-templates select="key('by-kind', @kind)"><xsl:sort select="price" data-type="number"/></xsl:apply-templates>
                    </table>
                    <p><xsl:value-of select="format-number(sum(key('by-kind', @kind)/price), '#,##0.00')"/></p>
                  </xsl:for-each>
                </body></html>
              </xsl:template>
              <xsl:template match="entry">
                <tr id="{@id}"><td><xsl:value-of select="title"/></td><td><xsl:value-of select="translate(text, 'aeiou', 'AEIOU')"/></td>
                  <td><xsl:choose><xsl:when test="price &gt; 500">dear</xsl:when><xsl:otherwise>cheap</xsl:otherwise></xsl:choose></td></tr>
              </xsl:template>
            </xsl:stylesheet>
            """;
    private static final int ENTRIES = 25;
    private static final int KINDS = 4;

    private final TransformerFactoryImpl factory = new TransformerFactoryImpl();
    private final Templates sheet;

    Transforming() throws TransformerException {
        sheet = factory.newTemplates(new StreamSource(new ByteArrayInputStream(SHEET.getBytes(StandardCharsets.UTF_8))));
    }

    @Override
    public long run(int thread, Random random, int size) throws TransformerException {
        long digest = 0;
        for (int number = 0; number < size; number++) {
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            byte[] document = document(random).getBytes(StandardCharsets.UTF_8);
            sheet.newTransformer().transform(new StreamSource(new ByteArrayInputStream(document)), new StreamResult(out));
            digest += Random.digest(out.toByteArray(), out.size());
        }
        return digest;
    }

    private static String document(Random random) {
        StringBuilder text = new StringBuilder("<catalogue>");
        for (int id = 0; id < ENTRIES; id++) {
            text.append("<entry id=\"e").append(id).append("\" kind=\"kind").append(random.below(KINDS)).append("\"><title>")
                    .append(Text.sentence(random, 4)).append("</title><text>").append(Text.sentence(random, 12)).append("</text><price>")
                    .append(random.below(1000)).append("</price></entry>");
        }
        return text.append("</catalogue>").toString();
    }
}
