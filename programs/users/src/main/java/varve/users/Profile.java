package varve.users;

/** What a user has said of himself: text that is seldom read. */
final class Profile {
    private final byte[] text;

    Profile(int bytes, int seed) {
        text = new byte[bytes];
        for (int i = 0; i < bytes; i++) {
            text[i] = (byte) (seed + i);
        }
    }

    long read() {
        long sum = 0;
        for (byte letter : text) {
            sum = sum * 31 + letter;
        }
        return sum;
    }
}
