package varve.kinds;

/** Sudoku by recursion: each empty cell is tried with each digit that its row, its column and its box have not. */
final class Sudoku {
    private static final String[] PUZZLES = {
        "53..7....6..195....98....6.8...6...34..8.3..17...2...6.6....28....419..5....8..79",
        "..............3.85..1.2.......5.7.....4...1...9.......5......73..2.1........4...9",
        "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4..",
        "..9748...7.........2.1.9.....7...24..64.1.59..98...3.....8.3.2.........6...2759..",
    };

    private final int[][] cells = new int[9][9];
    private int tries;

    private Sudoku(String puzzle) {
        for (int i = 0; i < 81; i++) {
            char c = puzzle.charAt(i);
            cells[i / 9][i % 9] = c == '.' ? 0 : c - '0';
        }
    }

    static long run() {
        long answer = 0;
        for (String puzzle : PUZZLES) {
            Sudoku sudoku = new Sudoku(puzzle);
            boolean solved = sudoku.solve(0, 0);
            answer = answer * 31 + sudoku.tries;
            for (int i = 0; solved && i < 9; i++) {
                answer = answer * 10 + sudoku.cells[i][8 - i];
            }
        }
        return answer;
    }

    private boolean solve(int row, int column) {
        if (row == 9) {
            return true;
        }
        int nextRow = column == 8 ? row + 1 : row;
        int nextColumn = column == 8 ? 0 : column + 1;
        if (cells[row][column] != 0) {
            return solve(nextRow, nextColumn);
        }
        for (int digit = 1; digit <= 9; digit++) {
            if (fits(row, column, digit)) {
                // The second puzzle would take minutes.
                if (++tries > 20_000) {
                    return false;
                }
                cells[row][column] = digit;
                if (solve(nextRow, nextColumn)) {
                    return true;
                }
                cells[row][column] = 0;
            }
        }
        return false;
    }

    private boolean fits(int row, int column, int digit) {
        for (int i = 0; i < 9; i++) {
            if (cells[row][i] == digit || cells[i][column] == digit) {
                return false;
            }
        }
        int top = row - row % 3;
        int left = column - column % 3;
        for (int i = top; i < top + 3; i++) {
            for (int j = left; j < left + 3; j++) {
                if (cells[i][j] == digit) {
                    return false;
                }
            }
        }
        return true;
    }
}
