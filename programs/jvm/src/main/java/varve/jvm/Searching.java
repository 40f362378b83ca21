package varve.jvm;

import java.io.IOException;
import org.apache.lucene.index.DirectoryReader;
import org.apache.lucene.index.IndexWriter;
import org.apache.lucene.index.Term;
import org.apache.lucene.search.BooleanClause;
import org.apache.lucene.search.BooleanQuery;
import org.apache.lucene.search.IndexSearcher;
import org.apache.lucene.search.PhraseQuery;
import org.apache.lucene.search.Query;
import org.apache.lucene.search.ScoreDoc;
import org.apache.lucene.search.TermQuery;
import org.apache.lucene.store.ByteBuffersDirectory;
import org.apache.lucene.store.Directory;

/** Searches an index that all threads share: an operation is a query, and reads the titles of what is best. */
final class Searching implements Work {
    private static final int DOCUMENTS = 4_000;
    private static final int BEST = 10;

    private final Directory folder = new ByteBuffersDirectory();
    private final DirectoryReader reader;

    Searching(long seed) throws IOException {
        try (IndexWriter writer = new IndexWriter(folder, Indexing.settings())) {
            Random random = new Random(seed);
            for (int number = 0; number < DOCUMENTS; number++) {
                writer.addDocument(Indexing.document(random, number));
            }
            writer.commit();
        }
        reader = DirectoryReader.open(folder);
    }

    @Override
    public long run(int thread, Random random, int size) throws IOException {
        IndexSearcher searcher = new IndexSearcher(reader);
        // A cache of answers would make the work of a thread depend on the others'.
        searcher.setQueryCache(null);
        long digest = 0;
        for (int number = 0; number < size; number++) {
            for (ScoreDoc found : searcher.search(query(random), BEST).scoreDocs) {
                String title = searcher.storedFields().document(found.doc).get("title");
                digest += Random.digest(title) ^ Random.mix(Float.floatToIntBits(found.score));
            }
        }
        return digest;
    }

    private static Query query(Random random) {
        return switch (random.below(4)) {
            case 0 -> new TermQuery(new Term("body", Text.word(random)));
            case 1 -> new PhraseQuery("body", Text.word(random), Text.word(random));
            default -> {
                BooleanQuery.Builder all = new BooleanQuery.Builder();
                all.add(new TermQuery(new Term("body", Text.word(random))), BooleanClause.Occur.MUST);
                all.add(new TermQuery(new Term("title", Text.word(random))), BooleanClause.Occur.SHOULD);
                all.add(new TermQuery(new Term("body", Text.word(random))), BooleanClause.Occur.SHOULD);
                yield all.build();
            }
        };
    }

    @Override
    public void close() throws IOException {
        reader.close();
        folder.close();
    }
}
