// Asks for memory in several ways, in functions that keep no frame pointer.
#include <cstddef>
#include <cstdlib>
#include <sys/mman.h>
#include <vector>

struct Row { long cells[4]; };

__attribute__((noinline)) static Row *helper(std::size_t rows) {
    Row *all = new Row[rows];
    all[0].cells[0] = 1;
    return all;
}

__attribute__((noinline)) static long left(std::size_t rows) {
    Row *all = helper(rows);              // line 16
    long first = all[0].cells[0];
    delete[] all;
    return first;
}

__attribute__((noinline)) static long right(std::size_t rows) {
    Row *all = helper(rows);              // line 23
    long last = all[0].cells[0] + 1;
    delete[] all;
    return last;
}

__attribute__((noinline)) static long grow(int rows) {
    std::vector<Row> all;
    for (int row = 0; row < rows; row++)
        all.push_back(Row{{row, 0, 0, 0}}); // line 32
    return all.back().cells[0];
}

__attribute__((noinline)) static long mapped(std::size_t bytes) {
    void *at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); // line 37
    long *words = static_cast<long *>(at);
    words[1] = 5;
    long read = words[1];
    munmap(at, bytes);
    return read;
}

char table[50000];

int main(int argc, char **) {
    table[argc] = 1;
    return left(1000 * argc) + right(2000 * argc) + grow(500 * argc) + mapped(1 << 20) == 0;
}
