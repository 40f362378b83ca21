package varve.jvm;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.thread.QueuedThreadPool;

/**
 * A web server (Jetty) with a map of sessions, and an archive that is never read: an operation is a request over a connection that is
 * kept, which reads and writes its session.
 */
final class Serving extends Handler.Abstract implements Work {
    private static final int SESSIONS = 4_000;
    private static final int ARCHIVED = 512;
    private static final int RECORD = 16 << 10;

    private static final class Session {
        final long[] seen = new long[64];
        long requests;
    }

    private final ConcurrentHashMap<String, Session> sessions = new ConcurrentHashMap<>();
    private final List<byte[]> archive = new ArrayList<>();
    private final Server server;
    private final int port;
    /** Sessions of a thread. */
    private final int each;

    Serving(int threads, long seed) throws Exception {
        each = SESSIONS / threads;
        Random random = new Random(seed);
        for (int number = 0; number < ARCHIVED; number++) {
            archive.add(record(random));
        }
        for (int thread = 0; thread < threads; thread++) {
            for (int number = 0; number < each; number++) {
                sessions.put(name(thread, number), session());
            }
        }
        server = new Server(new QueuedThreadPool(Math.max(8, threads + 6)));
        ServerConnector door = new ServerConnector(server, 1, 1);
        door.setHost(InetAddress.getLoopbackAddress().getHostAddress());
        server.addConnector(door);
        server.setHandler(this);
        server.start();
        port = door.getLocalPort();
    }

    private static byte[] record(Random random) {
        byte[] record = new byte[RECORD - 16];
        record[random.below(record.length)] = 1;
        return record;
    }

    private static Session session() {
        return new Session();
    }

    /** Threads have sessions of their own, so that answers do not depend on who is first. */
    private static String name(int thread, int number) {
        return "/" + thread + "-" + number;
    }

    @Override
    public boolean handle(Request request, Response response, Callback done) {
        Session session = sessions.get(Request.getPathInContext(request));
        if (session == null) {
            Response.writeError(request, response, done, 404);
            return true;
        }
        int at = (int) (session.requests++ % session.seen.length);
        session.seen[at] += session.requests;
        byte[] answer = Long.toString(session.seen[at] + session.requests).getBytes(StandardCharsets.US_ASCII);
        response.getHeaders().put("Content-Length", answer.length);
        response.write(true, ByteBuffer.wrap(answer), done);
        return true;
    }

    @Override
    public long run(int thread, Random random, int size) throws IOException {
        long digest = 0;
        try (Socket socket = new Socket(InetAddress.getLoopbackAddress(), port)) {
            socket.setTcpNoDelay(true);
            InputStream in = new BufferedInputStream(socket.getInputStream());
            for (int number = 0; number < size; number++) {
                String path = name(thread, random.below(each));
                String words = "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
                socket.getOutputStream().write(words.getBytes(StandardCharsets.US_ASCII));
                digest += Random.mix(Long.parseLong(answer(in)));
            }
        }
        return digest;
    }

    private static String answer(InputStream in) throws IOException {
        int length = 0;
        for (String line = line(in); !line.isEmpty(); line = line(in)) {
            if (line.regionMatches(true, 0, "Content-Length:", 0, 15)) {
                length = Integer.parseInt(line.substring(15).trim());
            }
        }
        return new String(in.readNBytes(length), StandardCharsets.US_ASCII);
    }

    private static String line(InputStream in) throws IOException {
        StringBuilder line = new StringBuilder();
        for (int read = in.read(); read != '\n'; read = in.read()) {
            if (read < 0) {
                throw new IOException("the server has closed the connection");
            }
            if (read != '\r') {
                line.append((char) read);
            }
        }
        return line.toString();
    }

    /** Sessions are new again. */
    @Override
    public long reset() {
        long requests = 0;
        for (Session session : sessions.values()) {
            requests += session.requests;
            session.requests = 0;
            java.util.Arrays.fill(session.seen, 0);
        }
        return requests + archive.size();
    }

    @Override
    public void close() throws Exception {
        server.stop();
    }
}
