package varve.classics;

import java.util.ArrayList;
import java.util.List;

/** Runs the task of highest priority that can run. */
final class Scheduler {
    /** From the lowest priority up. */
    private final List<Task> tasks = new ArrayList<>();
    private Task current;
    private int queued;
    private int held;

    void add(Task task) {
        tasks.add(task);
    }

    int queued() {
        return queued;
    }

    int held() {
        return held;
    }

    void run() {
        current = highest();
        while (current != null) {
            if (current.cannotRun()) {
                current = below(current);
            } else {
                current = current.takeTurn();
            }
        }
    }

    private Task highest() {
        return tasks.get(tasks.size() - 1);
    }

    private Task below(Task task) {
        return task.number == 0 ? null : tasks.get(task.number - 1);
    }

    /** The current task goes on only after a release; the next one gets its turn. */
    Task hold() {
        held++;
        current.held = true;
        return below(current);
    }

    /** The current task goes on when a packet comes. */
    Task sleep() {
        current.waiting = true;
        return current;
    }

    /** Releases a task; the more important one of it and the current goes on. */
    Task release(Task task) {
        task.held = false;
        return task.number > current.number ? task : current;
    }

    /** Sends a packet to its task, with the current one as sender; the more important one goes on. */
    Task queue(Packet packet) {
        Task to = packet.task;
        queued++;
        packet.task = current;
        boolean wakes = to.enqueue(packet);
        return wakes && to.number > current.number ? to : current;
    }
}
