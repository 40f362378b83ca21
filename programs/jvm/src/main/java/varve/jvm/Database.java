package varve.jvm;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

/**
 * A bank in a database in memory. An operation is a transaction: it moves money between two accounts of the thread's own branch, writes
 * down that it did, and looks at a page of what was written down before.
 */
final class Database implements Work {
    private static final int ACCOUNTS = 20_000;
    private static final int HISTORY = 20;

    private final String url;
    private final List<Connection> connections = new ArrayList<>();

    Database(String url, int threads, long seed) throws SQLException {
        this.url = url;
        // For a database without keyword arguments in common with others: types that all know.
        try (Connection first = open(); Statement make = first.createStatement()) {
            make.execute("create table account(id integer primary key, branch integer not null, name varchar(80) not null, balance bigint not null)");
            make.execute("create table movement(branch integer not null, number integer not null, source integer not null, target integer not null,"
                    + " amount integer not null, note varchar(120) not null, primary key(branch, number))");
            Random random = new Random(seed);
            try (PreparedStatement add = first.prepareStatement("insert into account values(?, ?, ?, ?)")) {
                for (int id = 0; id < ACCOUNTS; id++) {
                    add.setInt(1, id);
                    add.setInt(2, id % threads);
                    add.setString(3, Text.sentence(random, 4));
                    add.setLong(4, 1_000_000);
                    add.executeUpdate();
                }
            }
            first.commit();
        }
        for (int thread = 0; thread < threads; thread++) {
            connections.add(open());
        }
    }

    private Connection open() throws SQLException {
        Connection connection = DriverManager.getConnection(url, "sa", "");
        connection.setAutoCommit(false);
        return connection;
    }

    @Override
    public long run(int thread, Random random, int size) throws SQLException {
        Connection connection = connections.get(thread);
        int threads = connections.size();
        long digest = 0;
        try (PreparedStatement read = connection.prepareStatement("select name, balance from account where id = ?");
                PreparedStatement move = connection.prepareStatement("update account set balance = balance + ? where id = ?");
                PreparedStatement note = connection.prepareStatement("insert into movement values(?, ?, ?, ?, ?, ?)");
                PreparedStatement page = connection.prepareStatement(
                        "select number, amount, note from movement where branch = ? and number > ? and number <= ? order by number")) {
            for (int number = 0; number < size; number++) {
                int source = random.below(ACCOUNTS / threads) * threads + thread;
                int target = random.below(ACCOUNTS / threads) * threads + thread;
                int amount = 1 + random.below(100);
                read.setInt(1, source);
                try (ResultSet row = read.executeQuery()) {
                    row.next();
                    digest += Random.digest(row.getString(1)) + row.getLong(2);
                }
                change(move, source, -amount);
                change(move, target, amount);
                note.setInt(1, thread);
                note.setInt(2, number);
                note.setInt(3, source);
                note.setInt(4, target);
                note.setInt(5, amount);
                note.setString(6, Text.sentence(random, 6));
                note.executeUpdate();
                int from = random.below(number + 1);
                page.setInt(1, thread);
                page.setInt(2, from);
                page.setInt(3, from + HISTORY);
                try (ResultSet rows = page.executeQuery()) {
                    while (rows.next()) {
                        digest += Random.mix(rows.getInt(1) * 31L + rows.getInt(2)) ^ Random.digest(rows.getString(3));
                    }
                }
                connection.commit();
            }
        }
        return digest;
    }

    private static void change(PreparedStatement move, int account, int amount) throws SQLException {
        move.setInt(1, amount);
        move.setInt(2, account);
        move.executeUpdate();
    }

    /** No money is lost; all is as it was before. */
    @Override
    public long reset() throws SQLException {
        try (Connection connection = open(); Statement statement = connection.createStatement()) {
            long digest;
            try (ResultSet row = statement.executeQuery("select sum(balance), count(*) from account")) {
                row.next();
                if (row.getLong(1) != 1_000_000L * ACCOUNTS) {
                    throw new IllegalStateException("money was lost: " + row.getLong(1));
                }
                digest = row.getLong(2);
            }
            try (ResultSet row = statement.executeQuery("select count(*), sum(amount) from movement")) {
                row.next();
                digest += Random.mix(row.getLong(1)) + row.getLong(2);
            }
            statement.executeUpdate("delete from movement");
            statement.executeUpdate("update account set balance = 1000000");
            connection.commit();
            return digest;
        }
    }

    @Override
    public void close() throws SQLException {
        for (Connection connection : connections) {
            connection.close();
        }
    }
}
