package varve.durable;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.Map;
import varve.Varve;

/** Tasks whose states are constants of an enumeration: the same objects in each run, wherever they are kept. */
final class Tasks {
    private Tasks() {
    }

    /** States, one of which has code of its own, and numbers of their own. */
    enum State {
        OPEN(1),
        BUSY(20),
        DONE(300) {
            @Override
            State next() {
                return OPEN;
            }
        };

        private final int cost;
        /** How often it was reached, which survives with it. */
        private int reached;

        State(int cost) {
            this.cost = cost;
        }

        State next() {
            return values()[ordinal() + 1];
        }
    }

    static void run(int rounds) {
        Map<String, Object> tasks = Varve.root("tasks", LinkedHashMap::new);
        Map<Object, Integer> counts = Varve.root("counts", HashMap::new);
        // Found before this run has made the constants.
        Object first = tasks.get("alpha");
        for (String name : new String[] {"alpha", "beta", "gamma"}) {
            tasks.putIfAbsent(name, State.OPEN);
        }
        System.out.println("alpha was " + first + ", one of ours: "
                + (first == null || first == State.OPEN || first == State.BUSY || first == State.DONE));
        for (int round = 0; round < rounds; round++) {
            int n = 0;
            for (String name : tasks.keySet()) {
                State state = (State) tasks.get(name);
                // Tasks move at different speeds.
                if (round % ++n == 0) {
                    State next = state.next();
                    next.reached++;
                    tasks.put(name, next);
                    counts.merge(next, 1, Integer::sum);
                }
            }
        }
        int reached = 0;
        for (State state : State.values()) {
            reached += state.reached;
        }
        StringBuilder line = new StringBuilder();
        for (Map.Entry<String, Object> task : tasks.entrySet()) {
            State state = (State) task.getValue();
            line.append(task.getKey()).append(' ').append(said(state)).append(state == State.valueOf(state.name()) ? "" : " (another one)").append(", ");
        }
        for (State state : State.values()) {
            line.append(state).append('=').append(counts.get(state)).append(' ');
        }
        System.out.println(line + "reached " + reached);
    }

    private static String said(State state) {
        return switch (state) {
            case OPEN -> "open at " + State.OPEN.cost;
            case BUSY -> "busy at " + State.BUSY.cost;
            case DONE -> "done at " + State.DONE.cost;
        };
    }
}
