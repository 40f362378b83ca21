import java.util.*;
import site.ycsb.*;
import site.ycsb.workloads.CoreWorkload;
import site.ycsb.measurements.Measurements;

/** Has YCSB's own core workload draw operations, and prints them: a letter and the key. */
public final class Draw {
    static final class Recorder extends DB {
        private final StringBuilder out = new StringBuilder();

        private Status note(char kind, String key) {
            out.append(kind).append(' ').append(key).append('\n');
            return Status.OK;
        }

        @Override public Status read(String t, String key, Set<String> f, Map<String, ByteIterator> r) { return note('r', key); }
        @Override public Status scan(String t, String key, int n, Set<String> f, Vector<HashMap<String, ByteIterator>> r) { return note('s', key); }
        @Override public Status update(String t, String key, Map<String, ByteIterator> v) { return note('u', key); }
        @Override public Status insert(String t, String key, Map<String, ByteIterator> v) { return note('i', key); }
        @Override public Status delete(String t, String key) { return note('d', key); }
    }

    public static void main(String[] args) throws Exception {
        Properties p = new Properties();
        for (String arg : args) {
            int equals = arg.indexOf('=');
            p.setProperty(arg.substring(0, equals), arg.substring(equals + 1));
        }
        Measurements.setProperties(p);
        CoreWorkload workload = new CoreWorkload();
        workload.init(p);
        Recorder db = new Recorder();
        int load = Integer.parseInt(p.getProperty("load", "0"));
        for (int i = 0; i < load; i++) {
            workload.doInsert(db, null);
        }
        int operations = Integer.parseInt(p.getProperty("operationcount"));
        for (int i = 0; i < operations; i++) {
            workload.doTransaction(db, null);
        }
        System.out.print(db.out);
    }
}
