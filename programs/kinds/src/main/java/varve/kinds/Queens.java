package varve.kinds;

/** Eight queens, by recursion over arrays of flags. */
final class Queens {
    private final boolean[] rows = new boolean[8];
    private final boolean[] sums = new boolean[16];
    private final boolean[] differences = new boolean[16];
    private final int[] places = new int[8];

    private Queens() {
        java.util.Arrays.fill(rows, true);
        java.util.Arrays.fill(sums, true);
        java.util.Arrays.fill(differences, true);
        java.util.Arrays.fill(places, -1);
    }

    static long run() {
        long found = 0;
        for (int i = 0; i < 100; i++) {
            Queens queens = new Queens();
            found = found * 3 + (queens.place(0) ? queens.places[7] : 99);
        }
        return found;
    }

    private boolean place(int column) {
        for (int row = 0; row < 8; row++) {
            if (isFree(row, column)) {
                places[row] = column;
                set(row, column, false);
                if (column == 7 || place(column + 1)) {
                    return true;
                }
                set(row, column, true);
            }
        }
        return false;
    }

    private boolean isFree(int row, int column) {
        return rows[row] && sums[column + row] && differences[column - row + 7];
    }

    private void set(int row, int column, boolean free) {
        rows[row] = free;
        sums[column + row] = free;
        differences[column - row + 7] = free;
    }
}
