package varve.kept;

import java.util.Comparator;

/** Short texts first, and the ones of a length as they are. */
final class ByLength implements Comparator<String> {
    @Override
    public int compare(String a, String b) {
        int byLength = Integer.compare(a.length(), b.length());
        return byLength != 0 ? byLength : a.compareTo(b);
    }
}
