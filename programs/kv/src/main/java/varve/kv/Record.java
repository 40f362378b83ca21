package varve.kv;

import varve.common.Checksum;

/** What is stored under a key: fields of bytes, and how often it was changed. */
final class Record {
    private final byte[][] fields;
    private int version;

    Record(int fields, int fieldBytes, int content) {
        this.fields = new byte[fields][];
        for (int i = 0; i < fields; i++) {
            this.fields[i] = field(fieldBytes, content + i);
        }
    }

    private static byte[] field(int size, int content) {
        byte[] bytes = new byte[size];
        for (int i = 0; i < size; i++) {
            bytes[i] = (byte) ('a' + (content + i) % 26);
        }
        return bytes;
    }

    /** Puts a new field in the place of an old one. */
    void replace(int field, int content) {
        fields[field] = field(fields[field].length, content);
        version++;
    }

    /** The sum of all bytes: a read that looks at what it reads. */
    int read() {
        int sum = version;
        for (byte[] field : fields) {
            for (byte b : field) {
                sum += b;
            }
        }
        return sum;
    }

    void addTo(Checksum checksum) {
        checksum.add(version).add(read());
    }
}
