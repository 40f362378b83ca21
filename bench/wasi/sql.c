// SQLite on a database in memory: tables filled, joined, grouped, changed, searched.
#include "rounds.h"
#include "sqlite3.h"

static uint64_t sum;

static int row(void *unused, int columns, char **values, char **names) {
    (void)unused, (void)names;
    for (int i = 0; i < columns; i++)
        for (const char *c = values[i] ? values[i] : "null"; *c; c++) sum = sum * 31 + (uint8_t)*c;
    return 0;
}

static void run(sqlite3 *db, const char *sql) {
    char *error;
    if (sqlite3_exec(db, sql, row, 0, &error)) {
        fprintf(stderr, "%s: %s\n", sql, error);
        exit(1);
    }
}

static void bind(sqlite3 *db, sqlite3_stmt *statement) {
    if (sqlite3_step(statement) != SQLITE_DONE) {
        fprintf(stderr, "%s\n", sqlite3_errmsg(db));
        exit(1);
    }
    sqlite3_reset(statement);
}

static uint64_t work(int size) {
    sqlite3 *db;
    sqlite3_stmt *statement;
    uint32_t state = 3;
    if (sqlite3_open(":memory:", &db)) exit(1);
    sum = 0;
    run(db, "create table client (id integer primary key, name text, town text);"
            "create table sale (id integer primary key, client integer, price integer, what text); begin");
    sqlite3_prepare_v2(db, "insert into client (name, town) values (?, ?)", -1, &statement, 0);
    for (int i = 0; i < size / 10; i++) {
        char name[32], town[32];
        snprintf(name, sizeof name, "name %u", next(&state) % 1000000);
        snprintf(town, sizeof town, "town %u", next(&state) % 50);
        sqlite3_bind_text(statement, 1, name, -1, SQLITE_TRANSIENT);
        sqlite3_bind_text(statement, 2, town, -1, SQLITE_TRANSIENT);
        bind(db, statement);
    }
    sqlite3_finalize(statement);
    sqlite3_prepare_v2(db, "insert into sale (client, price, what) values (?, ?, ?)", -1, &statement, 0);
    for (int i = 0; i < size; i++) {
        char what[32];
        snprintf(what, sizeof what, "thing %u", next(&state) % 5000);
        sqlite3_bind_int(statement, 1, 1 + next(&state) % (size / 10));
        sqlite3_bind_int(statement, 2, next(&state) % 10000);
        sqlite3_bind_text(statement, 3, what, -1, SQLITE_TRANSIENT);
        bind(db, statement);
    }
    sqlite3_finalize(statement);
    run(db, "commit; create index by_client on sale (client); create index by_what on sale (what)");
    run(db, "select town, count(*), sum(price), avg(price) from sale join client on client.id = sale.client group by town order by town");
    run(db, "select what, count(*) c from sale group by what having c > 2 order by c desc, what limit 100");
    run(db, "select name, (select max(price) from sale where client = c.id) from client c order by name limit 500");
    run(db, "begin; update sale set price = price + length(what) where price % 3 = 0; delete from sale where what like 'thing 1%'; commit");
    run(db, "with recursive n(i) as (select 1 union all select i + 1 from n where i < 20000) select sum(i * i), total(i / 7.0) from n");
    run(db, "select count(*), min(price), max(price), upper(max(what)), total(price) from sale where what glob '*9*'");
    sqlite3_close(db);
    return sum;
}
