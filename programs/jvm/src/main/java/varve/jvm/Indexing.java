package varve.jvm;

import java.io.IOException;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.Document;
import org.apache.lucene.document.Field;
import org.apache.lucene.document.NumericDocValuesField;
import org.apache.lucene.document.StringField;
import org.apache.lucene.document.TextField;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.IndexWriterConfig;
import org.apache.lucene.index.NoMergePolicy;
import org.apache.lucene.index.Term;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.store.Directory;

/** Indexes documents: an operation is one of about a hundred words. Each thread has an index of its own. */
final class Indexing implements Work {
    static final int TITLE_WORDS = 5;
    static final int BODY_WORDS = 100;

    static Document document(Random random, int number) {
        Document document = new Document();
        document.add(new StringField("id", Integer.toString(number), Field.Store.YES));
        document.add(new TextField("title", Text.sentence(random, TITLE_WORDS), Field.Store.YES));
        document.add(new TextField("body", Text.sentence(random, BODY_WORDS), Field.Store.NO));
        document.add(new NumericDocValuesField("rank", random.below(1000)));
        return document;
    }

    /** What is merged, and when, is told by nobody's timing. */
    static IndexWriterConfig settings() {
        return new IndexWriterConfig(new StandardAnalyzer()).setMergePolicy(NoMergePolicy.INSTANCE).setRAMBufferSizeMB(4);
    }

    @Override
    public long run(int thread, Random random, int size) throws IOException {
        try (Directory folder = new ByteBuffersDirectory()) {
            try (IndexWriter writer = new IndexWriter(folder, settings())) {
                for (int number = 0; number < size; number++) {
                    writer.addDocument(document(random, number));
                }
                writer.commit();
            }
            try (DirectoryReader reader = DirectoryReader.open(folder)) {
                long digest = reader.numDocs();
                for (int i = 0; i < 100; i++) {
                    Term term = new Term("body", Text.word(random));
                    digest += Random.mix(reader.docFreq(term)) ^ Random.mix(reader.totalTermFreq(term) + i);
                }
                return digest;
            }
        }
    }
}
